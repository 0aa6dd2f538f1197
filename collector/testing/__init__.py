"""Tools for tests: of agents (`assert_passes`, the pytest plug-in), and of dialects, sinks and the
core (`span`, `log`).

`__init__.pyi` lists the names. A name is imported when it is first used, because pytest imports the
plug-in in this package in every run of an environment with pathgauge, used or not.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
