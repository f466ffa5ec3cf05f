"""mynode: a framework of my own."""

from mynode.configuration import config, no_backprop_mode
