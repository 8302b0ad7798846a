"""Let Ctrl-C reach the programs that tests start.

A shell lets a command in the background, such as ``nohup make test &``, ignore SIGINT, and each program that this
command starts would inherit that.
"""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
