"""Which notebooks to run: those whose template, parameters, imported modules, data files or lock changed.

`make book` calls this.  By hand: `snakemake --cores 2` (`--dry-run` shows what would run and why, `--config
profile=paper` takes the sizes of the papers, `--executor slurm` or `kubernetes` leaves this machine).
"""

from pathlib import Path

from flamebook.runs import schedule

PLAN = schedule.plan(Path(), config.get("profile", "quick"))
COMMAND = schedule.COMMAND  # no parameter: where Python lies is no reason to run anything again


# On a cluster the runs of a group follow one another; here the cores decide how many run at a time.
resource_scopes:
    run="local",


def files(wildcards):
    workflow.execution_settings.keep_going = True  # inside a group, too, where Snakemake passes no option on
    return [ancient(path) for path in PLAN.files(wildcards.run)]


rule all:
    input:
        [f"{PLAN.folder}/{name}/receipt.json" for name in PLAN.runs],


rule notebook:
    # Contents decide, not time stamps: `key` holds the digests, so the files themselves are ancient.
    input:
        files,
    output:
        f"{PLAN.folder}/{{run}}/receipt.json",
    params:
        key=lambda wildcards: PLAN.key(wildcards.run),
        words=lambda wildcards: PLAN.words(wildcards.run),
    threads: 1
    group:
        "runs"
    resources:
        run=1,
        mem_mb=2000,
    shell:
        "{COMMAND} {params.words}"


# The numbers of a run at the sizes of the papers, kept with the book: pages and the ledger read them.  Only `make record`
# has this rule, so that no build takes them for something to make.
if config.get("keep"):

    rule keep:
        input:
            ancient(f"{PLAN.folder}/{{run}}/receipt.json"),
        output:
            "data/results/{run}/receipt.json",
        run:
            schedule.keep(Path(input[0]).parent, Path(output[0]).parent)


# The longest runs begin first, so that none is left for the end, when the other cores have nothing to do; so does that
# of Flower, which mostly waits.
use rule notebook as training with:
    wildcard_constraints:
        run=".*_learning|flower",
    group:
        None
    output:
        f"{PLAN.folder}/{{run}}/receipt.json",
    priority: 1


ruleorder: training > notebook
