from __future__ import annotations

from seqstruct.harness.findings import Finding, findings, main

PAGE = """# A page

* Not a finding: **Holds**.
* *A is ahead of B* (Table 2, three
  seeds). **Holds in part**: with C (0.1; 0.2) by 1.5 points, not with D; the rest is prose. *E* too.
* *F.* **Not shown.** Here 0.5.

* *G* (H et al.). **Does not hold** early: 0.3.
"""


def test_a_finding_has_a_name_a_source_and_a_verdict_within_limits(tmp_path, capsys):
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    expected = [
        Finding("A is ahead of B", "Table 2, three seeds", "Holds in part", ": with C by 1.5 points, not with D"),
        Finding("F", "", "Not shown", ""),
        Finding("G", "H et al.", "Does not hold", " early"),
    ]
    assert findings(tmp_path / "page.md") == expected
    assert main([str(tmp_path)]) == 0
    count, _, title, _, *table = capsys.readouterr().out.splitlines()
    assert count == (
        "Findings of the sources: 3, of which 1 hold in part, 1 do not hold, 1 are not shown; ours alone: 0."
    )
    assert title == "## [A page](page.md)" and table[2] == (
        "| A is ahead of B | Table 2, three seeds | **Holds in part**: with C by 1.5 points, not with D |"
    )


def test_a_folder_without_findings_is_refused(tmp_path, capsys):
    assert main([str(tmp_path), "--count"]) == 1
    assert f"{tmp_path}: expected pages with findings, found none" in capsys.readouterr().err
