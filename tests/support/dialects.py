"""The installed dialects, and `read` with them."""

from functools import partial

from pathgauge.collector.config.plugins.dialects import installed_dialects
from pathgauge.collector.core import invocations

INSTALLED = installed_dialects()
read = partial(invocations.read, registry=INSTALLED)
