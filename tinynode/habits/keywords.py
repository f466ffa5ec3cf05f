"""Keyword arguments of other libraries, and the keyword of tinynode."""

from __future__ import annotations

AXIS = {
    "dim": "The keyword here is axis.",
    "dims": "The keyword here is axis.",
    "axes": "The keyword here is axis.",
    "keepdim": "The keyword here is keepdims.",
    "inplace": "No function writes in place: leave the keyword out, and use the result.",
    "dtype": 'The result has the dtype of x: cast it, x.astype("float64").',
    "out": "No function writes into an array: use the result.",
    "where": "Choose elements first: functions.where(mask, x, 0).",
    "initial": "Leave the keyword out.",
    "training": "A function takes no mode: nn.Dropout and nn.BatchNorm follow model.train().",
    "p": "The keyword here is ratio.",
    "rate": "The keyword here is ratio.",
    "input": "The keyword here is x.",
    "a": "The keyword here is x.",
    "unbiased": "The keyword here is correction: 1 for the unbiased variance.",
    "ddof": "The keyword here is correction.",
    "a_min": "The keyword here is min.",
    "a_max": "The keyword here is max.",
    "num_classes": "The keyword here is classes.",
    "weight": "The keyword here is w, or class_weight.",
    "bias": "The keyword here is b.",
    "scale_factor": "The keyword here is scale.",
    "negative_slope": "The keyword here is slope.",
    "divisor_override": "Multiply the result by a number.",
    "is_causal": "The keyword here is causal.",
    "attn_mask": "The keyword here is mask: True shows a key.",
    "dropout_p": "nn.MultiHeadAttention has dropout: leave the keyword out.",
    "normalized_shape": "The shape of gamma names the axes: leave the keyword out.",
    "start_dim": "The keyword here is start_axis.",
    "ignore_index": "The keyword here is ignore_label; the default is -1, and PyTorch's -100.",
    "size_average": "The keyword here is reduction.",
    "reduce": "The keyword here is reduction.",
    "target": "The target is the second argument.",
    "log_target": "Give probabilities: exp(log_p).",
    "padding_idx": "The keyword here is padding_index.",
    "padding_mode": 'Pad before: pad(x, widths, mode="reflect"), or mode="edge".',
    "max_norm": "There is no such option: leave the keyword out.",
    "beta": "The keyword here is delta.",
}
"""Keywords of functions, with the cure."""

OF_ONE_FUNCTION = {
    ("softmax_cross_entropy", "weight"): "The keyword here is class_weight.",
    ("softmax_cross_entropy", "pos_weight"): "The keyword here is class_weight.",
    ("solve_triangular", "lower"): "The keyword here is upper: upper=True for lower=False.",
    ("cholesky_solve", "lower"): "The keyword here is upper: upper=True for lower=False.",
    ("gumbel_softmax", "tau"): "The keyword here is temperature.",
    ("nll", "weight"): "softmax_cross_entropy has class_weight, for scores before softmax.",
}
"""Keywords whose cure differs from that of other functions, by function and keyword."""

WEIGHTED = 'Multiply the losses: loss(..., reduction="none") * weight, then take the mean.'
LOSSES = [
    "sigmoid_cross_entropy",
    "mean_squared_error",
    "mean_absolute_error",
    "huber",
    "hinge",
    "kl_divergence",
    "gaussian_nll",
]
"""Losses without weights: ``weight=`` has the cure ``WEIGHTED``."""

BACKWARD = {
    "create_graph": "The keyword here is enable_double_backprop.",
    "retain_graph": "A graph stays until its last Variable is dropped: leave the keyword out.",
    "gradient": "Assign the gradient first: y.grad = array.",
    "inputs": "Gradients of chosen inputs: tn.grad([y], [x]).",
    "allow_unused": "An input without a connection has the gradient None: leave it out.",
    "is_grads_batched": "tn.jacobian(f) computes all rows.",
}
"""Keywords of ``backward`` and ``grad``, with the cure."""

TRANSFORMS = {
    "in_dims": "The keyword here is in_axes.",
    "out_dims": "The keyword here is out_axes.",
    "randomness": "Give f a key for each example: tn.random.split(key, n).",
    "chunk_size": "Call the function on parts of the batch, and join the results.",
    "use_reentrant": "Leave the keyword out.",
    "preserve_rng_state": "Both calls draw the same numbers: leave the keyword out.",
    "set_to_none": "Gradients become None always: leave the keyword out.",
    "unitriangular": "The keyword here is unit_diagonal.",
    "trans": "The keyword here is transpose.",
    "left": "Transpose: X A = B is A^T X^T = B^T.",
}
"""Keywords of transforms, solvers and ``zero_grad``, with the cure."""

RANDOM = {
    "size": "The keyword here is shape.",
    "loc": "The keyword here is mean.",
    "scale": "The keyword here is deviation.",
    "std": "The keyword here is deviation.",
    "minval": "The keyword here is low.",
    "maxval": "The keyword here is high.",
    "p": "The keyword here is probability.",
    "num": "The keyword here is n.",
    "num_samples": "Draw once for each key: vmap over tn.random.split(key, n).",
    "seed": "Make a key of the seed: key=tn.random.key(0).",
    "generator": "Give a key: key=tn.random.key(0).",
}
"""Keywords of ``tn.random``, with the cure."""

COMPILE = {
    "mode": "There is one mode: leave the keyword out.",
    "backend": 'The device chooses: tn.config.device = "fast".',
    "fullgraph": "The function is always one net: leave the keyword out.",
    "dynamic": "Each shape has a net of its own: leave the keyword out.",
    "static_argnums": "Numbers and texts are always static: leave the keyword out.",
    "donate_argnums": "Optimizer steps reuse memory by themselves: leave the keyword out.",
}
"""Keywords of ``compile``, with the cure."""

LAYERS = {
    "in_features": "The keyword here is in_size.",
    "out_features": "The keyword here is out_size.",
    "units": "The keyword here is out_size.",
    "input_dim": "The keyword here is in_size, or rows.",
    "input_shape": "Give the input's size as the first argument.",
    "activation": "An activation is a layer of its own: nn.Sequential(layer, functions.relu).",
    "use_bias": "The keyword here is bias.",
    "nobias": "The keyword here is bias: bias=False.",
    "num_embeddings": "The keyword here is rows.",
    "embedding_dim": "The keyword here is size.",
    "num_features": "The keyword here is channels.",
    "num_channels": "The keyword here is channels.",
    "num_groups": "The keyword here is groups.",
    "normalized_shape": "The keyword here is shape.",
    "filters": "The keyword here is out_channels.",
    "strides": "The keyword here is stride.",
    "pool_size": "The keyword here is kernel_size.",
    "ksize": "The keyword here is kernel_size.",
    "p": "The keyword here is ratio.",
    "rate": "The keyword here is ratio.",
    "inplace": "No layer writes in place: leave the keyword out.",
    "kernel_initializer": "The keyword here is initializer.",
    "initialW": "The keyword here is initializer.",
    "weight_init": "The keyword here is initializer.",
    "affine": "The layer always has gamma and beta: leave the keyword out.",
    "elementwise_affine": "The layer always has gamma and beta: leave the keyword out.",
    "track_running_stats": "Running statistics are always kept: leave the keyword out.",
    "epsilon": "The keyword here is eps.",
    "d_model": "The keyword here is embed_dim.",
    "mask": "The keyword here is attn_mask.",
    "src_mask": "The keyword here is attn_mask.",
    "tgt_mask": "The keyword here is attn_mask.",
    "src_key_padding_mask": "The keyword here is key_padding_mask.",
    "tgt_key_padding_mask": "The keyword here is key_padding_mask.",
    "is_causal": "The constructor has the option: causal=True.",
    "target": "The keyword here is label.",
    "sep": "The keyword here is delimiter.",
    "usecols": "The keyword here is columns.",
    "root": "The keyword here is path.",
    "nhead": "The keyword here is num_heads.",
    "dim_feedforward": "The keyword here is hidden_size.",
    "layer_norm_eps": "The keyword here is eps.",
    "padding_mode": 'Pad before: functions.pad(x, widths, mode="reflect"), or mode="edge".',
    "padding_idx": "F.embedding(indices, w, padding_index=0) has the option.",
    "proj_size": "Put an nn.Linear after the layer.",
    "params": "The first argument is the model, or a list of parameters.",
    "learning_rate": "The keyword here is lr.",
    "weight_decay": "nn.AdamW(model, weight_decay=0.01) decays the weights.",
    "amsgrad": "There is no such option: leave the keyword out.",
    "dampening": "There is no such option: leave the keyword out.",
    "maximize": "Minimize -loss, and leave the keyword out.",
    "total_steps": "The keyword here is steps.",
    "T_max": "The keyword here is steps.",
    "eta_min": "The keyword here is min_lr.",
    "lr_lambda": "The keyword here is function.",
    "schedulers": "The keyword here is schedules; the optimizer is that of the schedules.",
    "num_workers": "Threads read ahead: prefetch=2, threads=4.",
    "pin_memory": "Leave the keyword out.",
    "collate_fn": "The keyword here is collate.",
    "sampler": "nn.Subset(dataset, numbers) chooses samples.",
    "epochs": "Give the number to run: trainer.run(epochs).",
    "callbacks": "For actions between epochs, call trainer.run(1) in a loop.",
    "decay": "The keyword here is rate.",
}
"""Keywords of the constructors of layers, optimizers and training tools, with the cure."""

VARIABLE = {
    "dtype": 'Cast with tn.asarray(data, dtype="float64").',
    "device": 'Choose a device with tn.asarray(data, device="fast").',
    "label": "The keyword here is name.",
    "data": "The first argument is the array: Variable(array).",
    "volatile": "Use with tn.no_backprop_mode().",
}
"""Keywords of ``Variable`` and ``Parameter``, with the cure."""


def keyword_cure(function: str, keyword: str) -> str:
    """A sentence that begins with a space, or an empty text for an unknown keyword."""
    if (function, keyword) in OF_ONE_FUNCTION:
        return f" {OF_ONE_FUNCTION[function, keyword]}"
    if keyword == "weight" and function in LOSSES:
        return f" {WEIGHTED}"
    if function == "Variable":
        tables = [VARIABLE]
    elif function == "compile":
        tables = [COMPILE]
    elif function.startswith("random."):
        tables = [RANDOM]
    else:
        is_layer = function[:1].isupper()
        tables = [LAYERS] if is_layer else [BACKWARD, AXIS, TRANSFORMS]
    for table in tables:
        if keyword in table:
            return f" {table[keyword]}"
    return ""
