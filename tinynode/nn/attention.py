"""The layer of attention with several heads, and a cache of keys and values.

Requirement: text is generated one token at a time, and earlier tokens keep their keys and values.
The caller has them in a ``KeyValueCache``; no layer keeps a cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tinynode import functions
from tinynode.core.conversion import as_flag
from tinynode.core.variable import Variable
from tinynode.devices import Device
from tinynode.errors import OperandError, describe
from tinynode.functions.network import attention_weights
from tinynode.functions.operands import as_operand, as_operands
from tinynode.nn.checks import checked_number, checked_size
from tinynode.nn.initializers import glorot_uniform, zeros
from tinynode.nn.inputs import as_input
from tinynode.nn.layers import Dropout, Linear
from tinynode.nn.module import Module
from tinynode.nn.parameter import Parameter, new_parameter


class KeyValueCache(NamedTuple):
    """The keys and values that a layer of attention has computed so far.

    ``KeyValueCache()`` is empty. A call with a cache gives another cache, and leaves the given one
    as it is. So a search may go on from one cache several times.

        cache = nn.KeyValueCache()
        for token in tokens:
            y, cache = block(embed(token), cache=cache)

    The arrays are Variables of the graph. In ``no_backprop_mode`` they have no gradient.

    Attributes:
        keys: (batch, num_heads, length, embed_dim / num_heads), or None.
        values: as the keys.
    """

    keys: Variable | None = None
    values: Variable | None = None

    @property
    def length(self) -> int:
        """The number of keys, which is the position of the next token."""
        return 0 if self.keys is None else self.keys.shape[2]

    def __repr__(self) -> str:
        return (
            "KeyValueCache()" if self.keys is None else f"KeyValueCache(keys of {self.keys.shape})"
        )

    def extended(self, keys: Variable, values: Variable) -> KeyValueCache:
        """A cache with more keys and values behind those of this cache.

        Raises:
            ValueError: the batch, the heads or their size differ.
        """
        if self.keys is None or self.values is None:
            return KeyValueCache(keys, values)
        own, new = self.keys.shape, keys.shape
        if own[:2] != new[:2] or own[3] != new[3] or self.values.shape != own:
            raise ValueError(
                "MultiHeadAttention: cache has keys of (batch, heads, length, size) "
                f"{own} and values of {self.values.shape}, the new keys are {new}. Each layer and "
                "each batch needs its own cache, which starts as nn.KeyValueCache()."
            )
        both = (self.keys, keys), (self.values, values)
        return KeyValueCache(*[functions.concat(pair, axis=2) for pair in both])


class MultiHeadAttention(Module):
    """Attention with several heads: PyTorch's ``MultiheadAttention``.

    head_h = softmax(q_h k_h^T / sqrt(d)) v_h, with q = W_q query + b_q, k = W_k key + b_k,
    v = W_v value + b_v, each cut into ``num_heads`` parts of length d. The output is
    W_o concat(head_1, ...) + b_o.

    query: (n, batch, embed_dim), key: (m, batch, kdim), value: (m, batch, vdim)
    -> y: as query, and the weights: (batch, n, m). The order of the axes is PyTorch's;
    ``batch_first=True`` gives (batch, n, features). Inputs without a batch have two axes.

    The parameters have PyTorch's names: ``in_proj_weight``: (3 embed_dim, embed_dim), the rows of
    W_q, W_k and W_v; ``in_proj_bias``: (3 embed_dim); ``out_proj.weight``: (embed_dim, embed_dim)
    and ``out_proj.bias``: (embed_dim). With another kdim or vdim, ``q_proj_weight``,
    ``k_proj_weight`` and ``v_proj_weight`` stand in place of ``in_proj_weight``.
    ``glorot_uniform`` draws the input weights, ``lecun_normal`` the output weight; biases start
    as zeros.

    Source: Vaswani et al., Attention Is All You Need, 2017.

    Args:
        embed_dim: the length of the query's last axis.
        num_heads: the number of heads, a divisor of embed_dim.
        dropout: the ratio of dropout on the weights, in training.
        bias: True for the biases.
        kdim: the length of the key's last axis; embed_dim by default.
        vdim: the length of the value's last axis; embed_dim by default.
        batch_first: True for the order (batch, n, features).
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: the device of the parameters; the current device by default.

    Raises:
        TypeError: a size is no integer.
        ValueError: a setting is out of range, or num_heads does not divide embed_dim.
    """

    one_line = True

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        name = "MultiHeadAttention"
        self.embed_dim = size = checked_size(f"{name}: embed_dim", embed_dim)
        self.num_heads = checked_size(f"{name}: num_heads", num_heads)
        if size % self.num_heads:
            raise ValueError(f"{name}: num_heads={num_heads} must divide embed_dim={embed_dim}.")
        self.kdim = size if kdim is None else checked_size(f"{name}: kdim", kdim)
        self.vdim = size if vdim is None else checked_size(f"{name}: vdim", vdim)
        self.batch_first = as_flag(name, "batch_first", batch_first)
        self.dropout = Dropout(checked_number(f"{name}: dropout", dropout, 0.0, 1.0))
        where: dict[str, Any] = {"dtype": dtype, "device": device}
        self.in_proj_weight: Parameter | None = None
        self.q_proj_weight: Parameter | None = None
        self.k_proj_weight: Parameter | None = None
        self.v_proj_weight: Parameter | None = None
        draw = glorot_uniform
        if self.kdim == self.vdim == size:
            shape = (3 * size, size)
            self.in_proj_weight = new_parameter("in_proj_weight", draw, shape, **where)
        else:
            self.q_proj_weight = new_parameter("q_proj_weight", draw, (size, size), **where)
            self.k_proj_weight = new_parameter("k_proj_weight", draw, (size, self.kdim), **where)
            self.v_proj_weight = new_parameter("v_proj_weight", draw, (size, self.vdim), **where)
        self.in_proj_bias: Parameter | None = None
        if as_flag(name, "bias", bias):
            self.in_proj_bias = new_parameter("in_proj_bias", zeros, (3 * size,), **where)
        self.out_proj = Linear(size, size, bias, **where)

    def forward(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        cache: KeyValueCache | None = None,
    ) -> Any:
        """(y, weights), as PyTorch's layer; with a cache (y, weights, the longer cache).

        Masks have PyTorch's sense: True *hides*. In the mask of
        ``functions.scaled_dot_product_attention``, True shows. A query that sees no key has the
        weights 0.

        Args:
            query: the inputs of the queries.
            key: the inputs of the keys; the query by default.
            value: the inputs of the values; the key by default.
            key_padding_mask: bool, (batch, m): True for keys that are padding.
            need_weights: False gives None in place of the weights.
            attn_mask: (n, m) or (batch * num_heads, n, m): bool, True where a query may not see
                a key, or floating, added to the scores.
            average_attn_weights: True for the mean of the heads' weights; False for the weights
                of each head: (batch, num_heads, n, m).
            is_causal: query i sees keys 0 to i only. Needs no ``attn_mask``.
            cache: earlier keys and values. The new keys stand behind them, and m counts all of
                them. With ``is_causal``, query i sees keys 0 to ``cache.length`` + i.

        Raises:
            OperandError: a mask is neither bool nor floating, or the cache is none.
            ValueError: a shape does not fit.
        """
        name = type(self).__name__
        need_weights = as_flag(name, "need_weights", need_weights)
        average = as_flag(name, "average_attn_weights", average_attn_weights)
        is_causal = as_flag(name, "is_causal", is_causal)
        start = 0 if cache is None else checked_cache(name, cache).length
        key = query if key is None else key
        value = key if value is None else value
        same = query is key is value
        query = self._batched("query", query, self.embed_dim)
        single, query = query.ndim == 2, self._batch_to_front(query)
        key = query if same else self._batch_to_front(self._batched("key", key, self.kdim))
        value = query if same else self._batch_to_front(self._batched("value", value, self.vdim))
        self._check_together(query, key, value)
        q, k, v = (self._heads(one) for one in self._projected(query, key, value, same))
        if cache is not None:
            cache = cache.extended(k, v)
            k, v = cache  # type: ignore[assignment]
        bias, mask = self._masks(attn_mask, key_padding_mask, q, k)
        weights = self.dropout(attention_weights(q, k, mask, is_causal, bias, start))
        y = functions.permute_dims(functions.matmul(weights, v), (0, 2, 1, 3))
        y = self.out_proj(functions.reshape(y, query.shape))
        y = self._batch_from_front(y, single)
        shown: Variable | None = None
        if need_weights:
            shown = functions.mean(weights, axis=1) if average else weights
            shown = shown[0] if single else shown
        return (y, shown) if cache is None else (y, shown, cache)

    def _batched(self, argument: str, x: Any, size: int) -> Variable:
        """A Variable of two or three axes; an array takes the dtype of the parameters."""
        name = "MultiHeadAttention"
        weight = self.out_proj.weight
        given = as_operands(name, as_input(x, weight), weight, names=(argument, "weight"))[0]
        if given.ndim not in (2, 3) or given.shape[-1] != size:
            order = "(batch, length, size)" if self.batch_first else "(length, batch, size)"
            raise ValueError(
                f"{name}: {argument} must be {order} or (length, size) with size={size}, got "
                f"shape {given.shape}."
            )
        return given

    def _batch_to_front(self, x: Variable) -> Variable:
        """(batch, length, size), from the order of the inputs."""
        if x.ndim == 2:
            return functions.expand_dims(x, axis=0)
        return x if self.batch_first else functions.permute_dims(x, (1, 0, 2))

    def _batch_from_front(self, y: Variable, single: bool) -> Variable:
        """The output in the order of the inputs; ``single`` is a sequence without a batch."""
        if single:
            return y[0]
        return y if self.batch_first else functions.permute_dims(y, (1, 0, 2))

    def _check_together(self, query: Variable, key: Variable, value: Variable) -> None:
        if key.shape[:2] != value.shape[:2] or query.shape[0] != key.shape[0]:
            raise ValueError(
                "MultiHeadAttention: query, key and value must have one batch, key and value one "
                f"length; got (batch, length) {query.shape[:2]}, {key.shape[:2]} and "
                f"{value.shape[:2]}; batch_first={self.batch_first}."
            )

    def _projected(
        self, query: Variable, key: Variable, value: Variable, same: bool
    ) -> tuple[Variable, ...]:
        """W_q query + b_q, and so on; one product for self-attention."""
        w, b = self.in_proj_weight, self.in_proj_bias
        if w is not None and same:
            return functions.split(functions.linear(query, w, b), 3, axis=-1)
        weights: tuple[Any, ...] = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        if w is not None:
            weights = functions.split(w, 3)
        biases = (None,) * 3 if b is None else functions.split(b, 3)
        three = zip((query, key, value), weights, biases, strict=True)
        return tuple([functions.linear(*one) for one in three])

    def _heads(self, x: Variable) -> Variable:
        """(batch, length, size) -> (batch, heads, length, size / heads)."""
        cut = (*x.shape[:2], self.num_heads, self.embed_dim // self.num_heads)
        return functions.permute_dims(functions.reshape(x, cut), (0, 2, 1, 3))

    def _masks(
        self, attn_mask: Any, key_padding_mask: Any, q: Variable, k: Variable
    ) -> tuple[Variable | None, Variable | None]:
        """(what is added to the scores, what may be seen), for (batch, heads, n, m)."""
        bias = seen = None
        batch, heads, n, m = (*q.shape[:3], k.shape[2])
        if attn_mask is not None:
            mask = _mask("attn_mask", attn_mask, q, ((n, m), (batch * heads, n, m)))
            if mask.ndim == 3:
                mask = functions.reshape(mask, (batch, heads, n, m))
            if mask.dtype == mask.xp.bool:
                seen = functions.equal(mask, False)
            else:
                bias = mask
        if key_padding_mask is not None:
            mask = _mask("key_padding_mask", key_padding_mask, q, ((batch, m),), only_bool=True)
            kept = functions.reshape(functions.equal(mask, False), (batch, 1, 1, m))
            seen = kept if seen is None else functions.where(seen, kept, False)
        return bias, seen

    def extra_repr(self) -> str:
        """The sizes, and the options that differ from the defaults."""
        options = [f"dropout={self.dropout.ratio}"] * (self.dropout.ratio > 0)
        options += ["bias=False"] * (self.in_proj_bias is None)
        options += [f"kdim={self.kdim}"] * (self.kdim != self.embed_dim)
        options += [f"vdim={self.vdim}"] * (self.vdim != self.embed_dim)
        options += ["batch_first=True"] * self.batch_first
        more = "".join(f", {option}" for option in options)
        return f"{self.embed_dim}, {self.num_heads}{more}"


def checked_cache(layer: str, cache: Any) -> KeyValueCache:
    """The cache of a call.

    Raises:
        OperandError: the value is no cache, such as a list of caches of several layers.
    """
    if not isinstance(cache, KeyValueCache):
        raise OperandError(
            f"{layer}: cache must be an nn.KeyValueCache, got {describe(cache)}. Start with "
            "nn.KeyValueCache(), one for each layer, and give the cache of the last call."
        )
    return cache


def _mask(
    argument: str, mask: Any, q: Variable, shapes: tuple[tuple[int, ...], ...], **only: bool
) -> Variable:
    """A mask as a Variable of a given shape, bool or floating."""
    name = "MultiHeadAttention"
    given = as_operand(name, argument, mask, q)
    if given.dtype != given.xp.bool and (
        only or not given.xp.isdtype(given.dtype, "real floating")
    ):
        kinds = "bool" if only else "bool or floating"
        raise OperandError(
            f"{name}: {argument} must be {kinds}, True where a key is hidden, got "
            f"{describe(mask)}."
        )
    if given.shape not in shapes:
        allowed = " or ".join(str(shape) for shape in shapes)
        raise ValueError(f"{name}: {argument} must have shape {allowed}, got {given.shape}.")
    return given
