"""Completion in a shell: a script for each, which asks the command itself what the word that is typed may become."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from flamelib import answers
from flamelib.core.statements import homes
from flamelib.core.vocabulary import DomainError
from flamelib.front.by_name import DOMAINS, QUESTIONS, WORDS, inputs

# For bash a word ends at the colon of an id and at the sign of a parameter as well, unless its word breaks lack them.
BASH = r"""
_flamelib() {
    local words typed before="" line="${COMP_LINE:0:COMP_POINT}" breaks="${COMP_WORDBREAKS//[!:=]/}" IFS=$' \t\n'
    read -r -a words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    typed="${words[${#words[@]}-1]}"
    [[ $breaks ]] && before="${typed%"${typed##*[$breaks]}"}"
    COMPREPLY=($("${words[0]}" completion --words "${words[@]:1}" 2>/dev/null))
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
}
complete -o default -F _flamelib flamelib
"""
ZSH = r"""
_flamelib() {
    local -a found
    found=(${(f)"$($words[1] completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    (( $#found )) || { _files; return }
    compadd -S '' -- ${(M)found:#*=}
    compadd -- ${found:#*=}
}
compdef _flamelib flamelib
"""
FISH = """
complete -c flamelib -f -a '(flamelib completion --words (commandline -opc)[2..] (commandline -ct))'
complete -c flamelib -F -n '__fish_seen_subcommand_from deployment run'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def candidates(commands: Iterable[str], words: Sequence[str]) -> list[str]:
    """What the last of the words after ``flamelib`` may become; nothing where those before it make no sense.

    Examples
    --------
    >>> candidates([], ["account", "shuffled", "randomizer=kary", "n_"])
    ['n_users=', 'n_buckets=']
    """
    *before, typed = words or [""]
    with suppress(DomainError):
        found = _next(commands, [word for word in before if word[:1] != "-"], typed)
        return [one for one in found if one.startswith(typed)]
    return []


def _next(commands: Iterable[str], before: Sequence[str], typed: str) -> Iterable[str]:
    command, *rest = before or [""]
    first = {"": commands, "evaluate": homes(), "completion": SCRIPTS, **dict.fromkeys(QUESTIONS, WORDS["record"])}
    if not rest and command in first:
        return first[command]
    given = answers.assignments(word for word in rest if "=" in word)
    taken, (name, sign, _) = _inputs(command, rest, given), typed.partition("=")
    if sign:
        return [f"{name}={word}" for word in taken.get(name, ())]
    return [f"{one}=" for one in taken if one not in given]


def _inputs(command: str, rest: Sequence[str], given: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """Name of every input, with the words that it may be if it takes words."""
    if command in QUESTIONS:
        return {name: DOMAINS[name].choices for name in inputs(command, rest[0], given)}
    if command == "evaluate":
        item, kind = answers.statement(rest[0]), given.get("randomizer")
        names = answers.flat(item, kind if kind in item.randomizers else None)
        return {one: (one == "randomizer" and item.randomizers) or item.domain(one).choices for one in names}
    if command == "compare":
        from flamelib.uses.deployments import TAKEN

        return dict.fromkeys(TAKEN, ())
    return {}
