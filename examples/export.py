"""Export to C and ONNX.

A trained model leaves Python: as a C99 header without dependencies, compiled here by the system's
compiler and called on one flight, and as an ONNX file, run by onnxruntime on many. Both agree with
the model in Python.
"""

import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd

from arboost import GradientBoostingClassifier

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#define LATE_IMPLEMENTATION
#include "late.h"

int main(void) {
  const char *airline = "JetBlue";
  double row[LATE_N_FEATURES] = {late_level(0, airline, strlen(airline)), 19.5, 3};
  double probabilities[LATE_N_CLASSES];
  late_proba(row, probabilities);
  printf("%.12f\n", probabilities[1]);
  return 0;
}
"""

flights = pd.read_csv(Path(__file__).parent / "data/flights.csv.gz")
X = flights[["airline", "hour", "visibility"]]
model = GradientBoostingClassifier(n_estimators=50, random_state=0).fit(X, flights["late"])
row = pd.DataFrame({"airline": ["JetBlue"], "hour": [19.5], "visibility": [3.0]})
here = model.predict_proba(row)[0, 1]
print(f"in Python  {here:.12f}")

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    model.to_c(folder / "late.h", name="late")
    (folder / "main.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O1", "main.c", "-o", "main", "-lm"], cwd=folder, check=True)
    answer = subprocess.run([folder / "main"], check=True, capture_output=True, text=True).stdout
print(f"in C       {answer.strip()}")

session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
inputs = {"airline": X[["airline"]].to_numpy(str).astype(object)}
inputs |= {name: X[[name]].to_numpy(float) for name in ("hour", "visibility")}
_, probabilities = session.run(None, inputs)
largest = np.abs(probabilities - model.predict_proba(X)).max()
print(f"in ONNX    {len(X)} rows, the largest difference is below 1e-12: {largest < 1e-12}")
