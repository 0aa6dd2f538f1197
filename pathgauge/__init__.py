"""The public API of pathgauge, for tests and plug-ins. Every other module is private and may
change.

    from pathgauge import ExpectedCall, Invocation, ReferenceTurn, ToolCall, ToolTrajectoryF1

    calls = (ToolCall("search_web"), ToolCall("summarize"))
    actual = Invocation("4bf92f35", "00f067aa", "pytest", tool_calls=calls)
    names = ("search_web", "summarize", "send_email")
    expected = ReferenceTurn(tool_calls=tuple(ExpectedCall(name) for name in names))
    ToolTrajectoryF1().score(actual, expected)  # 0.8: 2 of 3 expected calls matched

`__init__.pyi` lists the names. A name is imported when it is first used, because some scorers
load large libraries. `collector` and `scorers` beside this file are links to the folders at the
top of the repository.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
