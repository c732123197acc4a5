"""Which commands only show something, so that a session with nothing else did no work."""

from __future__ import annotations

import pytest

from holdfast.findings.rules.trail import found_out, only_shows

SHOWS = """\
find . -name '*.py'
find . -name '*.py' -type f | sort | uniq -c
sed -n 1,5p f
sed -n '1,5p' src/f.py | head
git branch
git branch -a
git branch -vv
git branch --list
git branch --show-current
git remote
git remote -v
git diff HEAD~1
git show HEAD^:a.py
ls *.py
ls src/[ab]?.py
cd src && ls
python --version
node_modules/.bin/tsc --version
grep -on foo a
sort a.txt
jq '.a[] | .b' package.json
grep -n 'foo(bar)' a
grep -n "def (a|b)" a
grep -rn 'x;y && z' . 2>/dev/null
cat a; git status --short && git diff | head -20
""".splitlines()

CHANGES = """\
find . -name '*.py' -delete
find . -name '*.py' -exec rm {} +
find . -ok rm {} +
find . -fprint names
find . -fls names
find . -execdir rm {} +
sed -n 1,5w f
sed -n '1,5w out' f
sed -i 1,5p f
sed -n -i 1,5p f
sed -n 1,5p -i f
sed -n '1e touch x' f
git branch new
git branch -D old
git branch -a -D old
git branch --list -m x
git remote add a b
git remote -v add a b
git diff --output=x
sort -o a a
sort -ro a a
sort --output=a a
sort -k1 --compress-program=x a
uniq a b
jq . a > b
echo "$(touch x)"
grep "$(touch x)" a
grep "`touch x`" a
grep 'a' b > c
grep 'a' b; rm b
grep "a\\" ; touch "x" b
cat <(touch x)
ls & rm x
python x.py --version
touch x --version
rg --pre touch x
rg --pre=touch x
tree -o x
make -v
'./deploy' -v
date -s tomorrow
date --set=tomorrow
""".splitlines()


@pytest.mark.parametrize("command", SHOWS)
def test_a_command_that_only_shows(command: str) -> None:
    assert only_shows(command)


@pytest.mark.parametrize("command", CHANGES)
def test_a_command_that_may_change_something(command: str) -> None:
    assert not only_shows(command)


@pytest.mark.parametrize(
    ("answer", "is_found"),
    [
        ("The cause: login() in auth.py drops the cookie.", True),
        ("It fails because the certificate has expired.", True),
        ("Die Antwort steht in auth.py:42.", True),
        ("`Session::close` is called twice.", True),
        ("The problem is the missing index.", True),
        ("It is Tuesday.", False),
        ("left.py is not committed.", False),
        ("On main, at 10:42.", False),
        ("All is well here.", False),
    ],
)
def test_an_answer_that_names_a_cause_or_a_place_in_the_code(answer: str, is_found: bool) -> None:
    assert found_out(answer) is is_found
