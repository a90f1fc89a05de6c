"""Fifth act: what the guard put down meanwhile becomes tables: how full, how fast, what goes first, what if."""

from pathlib import Path

from scripts.demo_steps import run, run_as_it_is, say

INTERVAL_MS = 5000
"""Of the guard's snapshots: a demo is over before an ordinary interval is."""

SHOWN = {
    "volume_pressure": "broker_id,log_dir,state,used_percent,ceiling_percent,bytes_to_fence",
    "retention_pressure": "rank,topic,partition,pressure_percent,limit,size_bytes",
}


def keys(landing: Path) -> dict[str, str]:
    return {"brimline.landing.uri": str(landing), "brimline.landing.interval.ms": str(INTERVAL_MS)}


def fleet(landing: Path, warehouse: Path, ceiling: int) -> None:
    say("The guard has put down snapshots all the while. One Spark session makes tables of them:")
    place = ("--warehouse", str(warehouse))
    run_as_it_is("fleet", "run", "--landing", str(landing), *place)
    for table, columns in SHOWN.items():
        run("fleet", "show", *place, table, "--columns", columns, "--limit", "5")
    say("And what if the ceiling had been lower? Nothing is changed by asking:")
    run("fleet", "simulate", *place, "--ceiling", str(ceiling), "--days", "2")
