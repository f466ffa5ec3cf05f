"""The blocks of a transformer: attention and a network, each with a residual and a LayerNorm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Never

from tinynode import functions
from tinynode.core.conversion import as_flag
from tinynode.core.variable import Variable
from tinynode.devices import Device
from tinynode.errors import OperandError, describe, unknown_keywords
from tinynode.functions.operands import as_operands
from tinynode.nn.attention import KeyValueCache, MultiHeadAttention
from tinynode.nn.checks import checked_number, checked_size
from tinynode.nn.inputs import as_input
from tinynode.nn.layers import Dropout, Linear
from tinynode.nn.module import Module
from tinynode.nn.normalization_layers import LayerNorm


class _Block(Module):
    """What the two blocks have in common: the parts, the attention to itself, and the network."""

    one_line = True

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        hidden_size: int | None = None,
        dropout: float = 0.0,
        activation: Callable[[Any], Variable] = functions.gelu,
        *,
        norm_first: bool = True,
        causal: bool = False,
        bias: bool = True,
        eps: float = 1e-5,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        name = type(self).__name__
        size = checked_size(f"{name}: embed_dim", embed_dim)
        hidden = 4 * size
        if hidden_size is not None:
            hidden = checked_size(f"{name}: hidden_size", hidden_size)
        if not callable(activation):
            raise TypeError(f"{name}: activation must be a function, got {describe(activation)}.")
        ratio = checked_number(f"{name}: dropout", dropout, 0.0, 1.0)
        checked_number(f"{name}: eps", eps, 0.0, math.inf)
        where: dict[str, Any] = {"dtype": dtype, "device": device}
        self.self_attn = MultiHeadAttention(
            size, num_heads, ratio, bias, batch_first=True, **where
        )
        self.linear1 = Linear(size, hidden, bias, **where)
        self.linear2 = Linear(hidden, size, bias, **where)
        self.norm1 = LayerNorm(size, eps, **where)
        self.norm2 = LayerNorm(size, eps, **where)
        self.dropout = Dropout(ratio)
        self.activation = activation
        self.norm_first = as_flag(name, "norm_first", norm_first)
        self.causal = as_flag(name, "causal", causal)

    def _refuse(self, unknown: dict[str, Never]) -> None:
        """Refuse unknown keywords, such as ``src_mask``."""
        if unknown:
            raise unknown_keywords(type(self).__name__, unknown)

    def _checked_input(self, x: Any, argument: str = "x") -> Variable:
        """An input as a Variable of the parameters' dtype."""
        name = type(self).__name__
        weight = self.linear1.weight
        y = as_operands(name, as_input(x, weight), weight, names=(argument, "weight"))[0]
        if y.ndim == 2:
            raise ValueError(
                f"{name}: {argument} must be (batch, length, size), got shape {y.shape}. Add the "
                f"batch: {argument}[None]."
            )
        return y

    def _attention(
        self, x: Variable, cache: KeyValueCache, masks: dict[str, Any]
    ) -> tuple[Variable, KeyValueCache]:
        """Attention to the positions in the cache, and to those of x."""
        y, _, cache = self.self_attn(
            x, need_weights=False, is_causal=self.causal, cache=cache, **masks
        )
        return self.dropout(y), cache

    def _network(self, x: Variable) -> Variable:
        y: Variable = self.dropout(self.activation(self.linear1(x)))
        y = self.dropout(self.linear2(y))
        return y

    def extra_repr(self) -> str:
        """The sizes and the options."""
        attention, ratio = self.self_attn, self.dropout.ratio
        return (
            f"{attention.embed_dim}, {attention.num_heads}, "
            f"{self.linear1.weight.shape[0]}, dropout={ratio}, norm_first={self.norm_first}, "
            f"causal={self.causal}"
        )


class TransformerBlock(_Block):
    """Self-attention and a network of two layers, each with a residual and a LayerNorm.

    norm_first=True, as in GPT-2: h = x + attention(norm1(x)),
    y = h + linear2(activation(linear1(norm2(h)))).
    norm_first=False, as in the paper: h = norm1(x + attention(x)),
    y = norm2(h + linear2(activation(linear1(h)))).

    x: (batch, length, embed_dim) -> y: as x; always batch first, for tokens are (batch, length).
    Both forms are PyTorch's ``TransformerEncoderLayer(..., batch_first=True)``, with the names
    ``self_attn``, ``linear1``, ``linear2``, ``norm1`` and ``norm2``. PyTorch's defaults are
    ``norm_first=False``, ``activation=relu``, ``dropout=0.1`` and 2048 hidden elements.
    After the last block with norm_first=True, add an ``nn.LayerNorm``.

    Source: Vaswani et al., Attention Is All You Need, 2017; Radford et al., Language Models are
    Unsupervised Multitask Learners, 2019.

    Args:
        embed_dim: the length of x's last axis.
        num_heads: the number of heads, a divisor of embed_dim.
        hidden_size: the length of the outputs of linear1; 4 embed_dim by default.
        dropout: the ratio of dropout on the weights, inside of the network and before each sum.
        activation: the function between the two layers.
        norm_first: True to normalise before attention and network, False after the sums.
        causal: True for a position that sees itself and earlier positions only.
        bias: True for the biases of attention and network.
        eps: of the LayerNorms.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: the device of the parameters; the current device by default.

    Raises:
        TypeError: a size is no integer, or the activation cannot be called.
        ValueError: a setting is out of range, or num_heads does not divide embed_dim.
    """

    def forward(
        self,
        x: Any,
        attn_mask: Any = None,
        key_padding_mask: Any = None,
        *,
        cache: KeyValueCache | None = None,
        **unknown: Never,
    ) -> Any:
        """y, or (y, the longer cache) with a cache; the masks are as in ``MultiHeadAttention``.

        True in a mask hides. With a cache, x has the new positions alone, and the masks count all
        keys.

        Raises:
            OperandError: the cache is no KeyValueCache.
            ValueError: a shape does not fit.
        """
        self._refuse(unknown)
        y = self._checked_input(x)
        own = KeyValueCache() if cache is None else cache
        masks = {"key_padding_mask": key_padding_mask, "attn_mask": attn_mask}
        if self.norm_first:
            seen, own = self._attention(self.norm1(y), own, masks)
            y = y + seen
            y = y + self._network(self.norm2(y))
        else:
            seen, own = self._attention(y, own, masks)
            y = self.norm1(y + seen)
            y = self.norm2(y + self._network(y))
        return y if cache is None else (y, own)


class DecoderCache(NamedTuple):
    """The cache of a ``TransformerDecoderBlock``; ``DecoderCache()`` is empty.

    Attributes:
        own: the keys and values of the block's own positions.
        memory: those of the memory, which the first call computes.
    """

    own: KeyValueCache = KeyValueCache()
    memory: KeyValueCache = KeyValueCache()

    @property
    def length(self) -> int:
        """The number of the block's own positions, which is the position of the next token."""
        return self.own.length


class TransformerDecoderBlock(_Block):
    """Self-attention, attention to a memory, and a network of two layers, each with a residual.

    norm_first=True: h = x + attention(norm1(x)), k = h + attention(norm2(h), memory),
    y = k + linear2(activation(linear1(norm3(k)))).
    norm_first=False, as in the paper: h = norm1(x + attention(x)),
    k = norm2(h + attention(h, memory)), y = norm3(k + linear2(activation(linear1(k)))).

    x: (batch, length, embed_dim), memory: (batch, m, embed_dim) -> y: as x; always batch first.
    Both forms are PyTorch's ``TransformerDecoderLayer(..., batch_first=True)``, with the names
    ``self_attn``, ``multihead_attn``, ``linear1``, ``linear2`` and ``norm1`` to ``norm3``. The
    differences are ``causal``, which is True here, and the defaults of ``TransformerBlock``.

    Source: Vaswani et al., Attention Is All You Need, 2017.

    Args: those of ``TransformerBlock``; ``causal=True`` is the default.

    Raises:
        TypeError: a size is no integer, or the activation cannot be called.
        ValueError: a setting is out of range, or num_heads does not divide embed_dim.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        hidden_size: int | None = None,
        dropout: float = 0.0,
        activation: Callable[[Any], Variable] = functions.gelu,
        *,
        norm_first: bool = True,
        causal: bool = True,
        bias: bool = True,
        eps: float = 1e-5,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        where: dict[str, Any] = {"dtype": dtype, "device": device}
        super().__init__(
            embed_dim, num_heads, hidden_size, dropout, activation,
            norm_first=norm_first, causal=causal, bias=bias, eps=eps, **where,
        )  # fmt: skip
        attention, ratio = self.self_attn, self.dropout.ratio
        self.multihead_attn = MultiHeadAttention(
            attention.embed_dim, attention.num_heads, ratio, bias, batch_first=True, **where
        )
        self.norm3 = LayerNorm(attention.embed_dim, eps, **where)

    def forward(
        self,
        x: Any,
        memory: Any,
        attn_mask: Any = None,
        memory_mask: Any = None,
        key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        *,
        cache: DecoderCache | None = None,
        **unknown: Never,
    ) -> Any:
        """y, or (y, the longer cache) with a cache. True in a mask hides a key.

        With a cache, x has the new positions alone, and the masks of x count all positions. The
        keys and values of the memory are computed by the first call with a cache.

        Args:
            x: (batch, length, embed_dim).
            memory: the output of an encoder, (batch, m, embed_dim).
            attn_mask: as in ``MultiHeadAttention``, for x; bool or floating.
            memory_mask: the same for the memory: (length, m) or (batch * num_heads, length, m).
            key_padding_mask: bool, (batch, length): True for positions of x that are padding.
            memory_key_padding_mask: bool, (batch, m): the same for the memory.
            cache: ``DecoderCache()``, or the cache of the last call.

        Raises:
            OperandError: the cache is no DecoderCache.
            ValueError: a shape does not fit.
        """
        self._refuse(unknown)
        y = self._checked_input(x)
        own, known = self._checked_caches(cache)
        masks = {"key_padding_mask": key_padding_mask, "attn_mask": attn_mask}
        memory_masks = {"key_padding_mask": memory_key_padding_mask, "attn_mask": memory_mask}
        if self.norm_first:
            seen, own = self._attention(self.norm1(y), own, masks)
            y = y + seen
            seen, known = self._attention_to(memory, self.norm2(y), known, memory_masks)
            y = y + seen
            y = y + self._network(self.norm3(y))
        else:
            seen, own = self._attention(y, own, masks)
            y = self.norm1(y + seen)
            seen, known = self._attention_to(memory, y, known, memory_masks)
            y = self.norm2(y + seen)
            y = self.norm3(y + self._network(y))
        return y if cache is None else (y, DecoderCache(own, known))

    def _checked_caches(self, cache: Any) -> DecoderCache:
        if cache is None:
            return DecoderCache()
        if not isinstance(cache, DecoderCache):
            raise OperandError(
                f"TransformerDecoderBlock: cache must be an nn.DecoderCache, got "
                f"{describe(cache)}. Start with nn.DecoderCache(), one for each block."
            )
        return cache

    def _attention_to(
        self, memory: Any, x: Variable, cache: KeyValueCache, masks: dict[str, Any]
    ) -> tuple[Variable, KeyValueCache]:
        """Attention to the memory, whose keys are computed if the cache has none."""
        memory = self._checked_input(memory, "memory")
        if cache.length and cache.length != memory.shape[1]:
            raise ValueError(
                f"TransformerDecoderBlock: memory has length {memory.shape[1]}, and the cache has "
                f"{cache.length} keys of a memory. Another memory needs nn.DecoderCache()."
            )
        new = memory[:, :0] if cache.length else memory
        y, _, cache = self.multihead_attn(x, new, need_weights=False, cache=cache, **masks)
        return self.dropout(y), cache
