"""Write tests/system/recorded_answers.json: digests of the models of about a hundred fits.

Run the tool only after an intended change of models, and state the change in CHANGELOG.md.
"""

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.recorded_fits import all_fits, digests_of  # noqa: E402

RECORD = ROOT / "tests" / "system" / "recorded_answers.json"


def main() -> None:
    """Fit all recorded models and write their digests."""
    recorded = {}
    for name, fit in all_fits().items():
        with tempfile.TemporaryDirectory() as folder:
            recorded[name] = digests_of(fit(), Path(folder))
    RECORD.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
    print(f"{len(recorded)} fits in {RECORD.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
