"""The first example that a newcomer copies must run, and print what the page says."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def test_first_example_prints_what_it_says(capsys):
    code = re.search(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL).group(1)
    expected = re.search(r"^# prints: (.*)$", code, re.MULTILINE).group(1)
    exec(compile(code, str(README), "exec"), {})
    assert capsys.readouterr().out.strip() == expected
