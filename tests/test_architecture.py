"""Who may import whom: the contracts stand in pyproject.toml."""

from importlinter.cli import lint_imports


def test_imports_go_one_way(capsys):
    status = lint_imports(no_cache=True)

    assert status == 0, capsys.readouterr().out
