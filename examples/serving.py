"""A model behind HTTP with the standard library.

The service loads a model file with `arboost.load`, which needs NumPy and no scikit-learn, and
answers JSON over HTTP. Missing fields are missing values, unknown levels too; a wrong type gets
status 400 and a message that names the column.
"""

import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pandas as pd

import arboost

flights = pd.read_csv(Path(__file__).parent / "data/flights.csv.gz")
trained = arboost.GradientBoostingClassifier(n_estimators=80, random_state=0).fit(flights, "late")
trained.save("flights.arb")

model = arboost.load("flights.arb")  # the service starts here


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        row = {name: [given.get(name)] for name in model.feature_names}
        try:
            status, answer = 200, {"late": round(model.predict_proba(row)[0, 1], 3)}
        except (TypeError, ValueError) as error:
            status, answer = 400, {"error": str(error)}
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        pass


def ask(url, **fields):
    request = urllib.request.Request(url, json.dumps(fields).encode())
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


with HTTPServer(("127.0.0.1", 0), Service) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    print("morning, clear ", *ask(url, airline="Delta", origin="LGA", hour=6.5, visibility=10))
    print("evening, storm ", *ask(url, airline="Delta", origin="LGA", hour=19.5, rain=0.3))
    print("new airline    ", *ask(url, airline="Fly Me", origin="LGA", hour=19.5, rain=0.3))
    print("wrong type     ", *ask(url, airline="Delta", hour="evening"))
    server.shutdown()
