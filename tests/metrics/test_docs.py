"""The metrics, their documentation, the alert rules, their runbook and the dashboard agree."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from django.utils import timezone
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client import Counter, Histogram

from reservations import gauges
from roombook.metrics import counters

ROOT = Path(__file__).parent.parent.parent
PROMETHEUS = ROOT / "deploy/prometheus"
PAGE = (ROOT / "docs/metrics.md").read_text()
RUNBOOK = (ROOT / "docs/runbook.md").read_text()
DASHBOARD = json.loads((ROOT / "deploy/grafana/roombook.json").read_text())
RULES = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())
ALERTS = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}
METRIC_NAMES = set(re.findall(r"^\| `(roombook_\w+)` \|", PAGE, re.M))
PROMTOOL = shutil.which("promtool")


def get_series():
    """The names of all series, as an expression may use them, each with its labels."""
    series = {}
    for metric in vars(counters).values():
        if isinstance(metric, Counter | Histogram):
            [described] = metric.describe()
            is_counter = isinstance(metric, Counter)
            labels = {*metric._labelnames, *([] if is_counter else ["le"])}
            for suffix in ("total",) if is_counter else ("bucket", "count", "sum"):
                series[f"{described.name}_{suffix}"] = labels
    for gauge in [*gauges.read_gauges(now=timezone.now()), *gauges.DatabaseCollector().collect()]:
        series[gauge.name] = set(gauge._labelnames)
    return series


def get_metric_name(series_name):
    return re.sub(r"_(total|bucket|count|sum)$", "", series_name)


@pytest.mark.django_db
def test_page_lists_every_metric():
    assert {get_metric_name(name) for name in get_series()} == METRIC_NAMES


@pytest.mark.django_db
def test_expressions_of_dashboard_and_alerts_use_existing_metrics_and_labels():
    series = get_series()
    panels = [each["targets"] for each in DASHBOARD["panels"] if each["type"] != "row"]
    expressions = [target["expr"] for targets in panels for target in targets]
    expressions += [rule["expr"] for rule in ALERTS.values()]

    assert len(expressions) > 20
    for expression in expressions:
        used = re.findall(r"(roombook_\w+)(?:{([^}]*)})?", expression)
        assert used or "up{" in expression, expression
        for name, matchers in used:
            assert name in series, expression
            assert set(re.findall(r"(\w+)[=!]", matchers)) <= {*series[name], "job"}, expression
    shown = {get_metric_name(name) for name in re.findall(r"roombook_\w+", " ".join(expressions))}
    assert shown == METRIC_NAMES


def test_dashboard_has_only_fields_that_grafana_knows():
    register_default_plugins()

    read = Dashboard.from_json(DASHBOARD)

    assert find_differences(DASHBOARD, json.loads(JSONEncoder().encode(read))) == []


def find_differences(given, read, path=""):
    """The paths of fields that were not understood as they are."""
    if isinstance(given, dict) and isinstance(read, dict):
        pairs = [(key, value, read.get(key)) for key, value in given.items()]
    elif isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        pairs = [(number, *both) for number, both in enumerate(zip(given, read, strict=True))]
    else:
        return [] if given == read else [path]
    return [
        found
        for key, one, other in pairs
        for found in find_differences(one, other, f"{path}/{key}")
    ]


def test_every_alert_has_its_entry_in_the_runbook():
    entries = re.split(r"^### ", RUNBOOK, flags=re.M)[1:]
    headings = [entry.splitlines()[0] for entry in entries]

    assert sorted(headings) == sorted(ALERTS)
    for entry in entries:
        assert "    " in entry, "says what to type"
    for name, rule in ALERTS.items():
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert rule["annotations"]["runbook"].endswith(f"docs/runbook.md#{name.lower()}")


def test_every_alert_fires_in_a_unit_test():
    tests = yaml.safe_load((PROMETHEUS / "alerts_test.yml").read_text())["tests"]
    checks = [check for test in tests for check in test["alert_rule_test"]]
    fired = {check["alertname"] for check in checks if "exp_alerts" in check}
    quiet = {check["alertname"] for check in checks if "exp_alerts" not in check}

    assert fired == quiet == set(ALERTS)


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
@pytest.mark.parametrize(
    "words",
    [
        ("check", "config", "--syntax-only", "prometheus.yml"),
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
    ids=" ".join,
)
def test_promtool_accepts(words):
    checked = subprocess.run(
        [PROMTOOL, *words], cwd=PROMETHEUS, capture_output=True, text=True, check=False
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr
