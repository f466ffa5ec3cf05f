"""Habits from PyTorch's tools for data and training: ``torch.utils.data``, ``torch.optim`` ..."""

from __future__ import annotations

from tinynode.habits.habit import Habit

DATA = (
    Habit("nn", "TensorDataset", "nn.ArrayDataset(images, labels)"),
    Habit(
        "nn",
        "random_split",
        "nn.split_dataset(dataset, 0.2, seed=0)",
        "The result is the pair of training and validation data.",
    ),
    Habit(
        "nn",
        "RandomSampler SequentialSampler SubsetRandomSampler BatchSampler WeightedRandomSampler",
        "nn.DataLoader(dataset, 32, shuffle=True, seed=0)",
        "nn.Subset chooses samples by number.",
    ),
    Habit("nn", "IterableDataset ConcatDataset", "nn.Dataset", "Define len and [i]."),
    Habit("nn", "default_collate", "nn.DataLoader(dataset, 32)", "The loader stacks samples."),
    Habit("nn", "Compose", "nn.DataLoader(dataset, 32, transform=f)", "One function calls all."),
    Habit("nn", "ToTensor", "nn.transforms.to_float"),
    Habit("nn", "Normalize", "nn.transforms.normalize"),
    Habit("nn", "RandomCrop", "nn.transforms.random_crop"),
    Habit("nn", "RandomHorizontalFlip RandomVerticalFlip", "nn.transforms.random_flip"),
    Habit("nn", "RandomRotation", "nn.transforms.random_rotation"),
    Habit("nn", "MNIST FashionMNIST CIFAR10", "nn.datasets.load_digits()", "No data is loaded."),
)

TRAINING = (
    Habit("tn nn", "lr_scheduler", "nn.schedules"),
    Habit("nn", "StepLR", "nn.schedules.StepSchedule(optimizer, 30)"),
    Habit("nn", "MultiStepLR", "nn.schedules.MultiStepSchedule(optimizer, [30, 60])"),
    Habit("nn", "ExponentialLR", "nn.schedules.ExponentialSchedule(optimizer, 0.9)"),
    Habit(
        "nn",
        "CosineAnnealingLR CosineAnnealingWarmRestarts",
        "nn.schedules.CosineSchedule(optimizer, steps)",
    ),
    Habit("nn", "OneCycleLR", "nn.schedules.OneCycleSchedule(optimizer, 0.1, steps)"),
    Habit("nn", "ReduceLROnPlateau", "nn.schedules.PlateauSchedule(optimizer)"),
    Habit("nn", "LambdaLR", "nn.schedules.FunctionSchedule(optimizer, f)"),
    Habit("nn", "LinearLR ConstantLR", "nn.schedules.WarmupSchedule(optimizer, steps)"),
    Habit(
        "nn",
        "SequentialLR",
        "nn.schedules.SequentialSchedule([first, second], milestones=[100])",
        "After a warm-up: nn.schedules.CosineSchedule(optimizer, steps, warmup=100).",
    ),
    Habit("nn", "clip_grad_value_", "nn.clip_gradients_by_value(model, 1.0)"),
    Habit("tn nn", "amp autocast GradScaler", "nn.LossScaler()"),
    Habit("nn", "AveragedModel swa_utils", "nn.ExponentialMovingAverage(model)"),
    Habit(
        "nn",
        "Adadelta Adamax RAdam Rprop ASGD SparseAdam Muon",
        "nn.Adam(model)",
        "A rule of your own is a subclass of nn.Optimizer.",
    ),
    Habit("nn", "weight_norm", "nn.WeightNorm(layer)"),
    Habit("nn", "spectral_norm", "nn.SpectralNorm(layer)"),
    Habit(
        "nn",
        "pack_padded_sequence pad_packed_sequence pack_sequence PackedSequence rnn",
        "y, state = nn.LSTM(3, 4)(x, lengths=lengths)",
        "The padding gets no gradient.",
    ),
    Habit("nn", "MaxUnpool2d", "F.max_unpool2d(x, indices, 2)"),
    Habit("nn", "pad_sequence", "np.zeros((batch, steps))", "Fill the rows, and give lengths."),
    Habit("nn", "DistributedDataParallel", "nn.Sequential(layer)", "One process, one device."),
    Habit("nn", "SummaryWriter", "nn.Trainer", "The trainer's log has a form for TensorBoard."),
)

VARIABLES = (
    Habit("x", "repeat", "F.tile(x, (2, 1))", "NumPy's repeat is tn.functions.repeat."),
    Habit("x", "new_zeros new_ones new_full new_tensor", "np.zeros((2, 3), dtype=x.dtype)"),
    Habit("x", "logit", "F.log(x / (1 - x))"),
)

OPTIMIZERS = (
    Habit("optimizer", "param_groups", "optimizer.groups", "The learning rate is optimizer.lr."),
    Habit(
        "optimizer",
        "add_param_group",
        'nn.Adam([{"parameters": layer, "lr": 0.01}])',
        "All groups are given at the start.",
    ),
    Habit("optimizer", "state", "optimizer.state_dict()"),
    Habit("optimizer", "defaults", "optimizer.lr"),
    Habit(
        "optimizer",
        "register_step_post_hook register_step_pre_hook",
        "tn.FunctionHook",
        "A hook has the event updated.",
    ),
)

AVERAGES = (
    Habit("average", "update_parameters", "average.update()", "The constructor took the model."),
    Habit(
        "average",
        "module ema_model copy_to apply_shadow store restore",
        "with average.average(): y = model(x)",
        "Inside, model.state_dict() has the means.",
    ),
)

HABITS = DATA + TRAINING + VARIABLES + OPTIMIZERS + AVERAGES
