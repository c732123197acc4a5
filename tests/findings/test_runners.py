"""Real output of test runners: what it says of the run, behind a pipe and before it."""

from __future__ import annotations

import pytest

from holdfast.findings.rules.commands import Checks, check_kinds
from holdfast.findings.rules.trail import may_write_code

PYTEST = (
    "============================= test session starts ==============================\n"
    "platform linux -- Python 3.12.3, pytest-8.3\n"
    "collected 12 items\n"
    "\n"
    "tests/test_a.py ............                                             [100%]\n"
    "\n"
    "============================== 12 passed in 0.34s ==============================\n"
)
QUIET = (
    "............                                                             [100%]\n12 passed in 0.34s\n"
)
RED = "FAILED tests/test_a.py::test_x - assert 1 == 2\n1 failed, 11 passed in 0.34s\n"
# command, whether it failed, what it printed, what that says of the tests
RUNS = (
    ("pytest", False, PYTEST, "green"),
    ("pytest -q", False, QUIET, "green"),
    ("python -m pytest -q", False, QUIET, "green"),
    ("uv run pytest -q", False, QUIET, "green"),
    ("uv run --with x pytest", False, QUIET, "green"),
    (".venv/bin/python -m pytest tests -q", False, QUIET, "green"),
    ("source .venv/bin/activate && pytest -q", False, QUIET, "green"),
    ("cd /x && pytest -q 2>&1 | tail -5", False, QUIET, "green"),
    ("pytest -q 2>&1 | tee out.log", False, QUIET, "green"),
    (
        "pytest -qq",
        False,
        ("............                                                             [100%]\n"),
        "green",
    ),
    ("pytest -qq --no-header; echo exit=$?", False, "....   [100%]\nexit=0\n", "green"),
    ("PYTHONPATH=src pytest -x -q", False, QUIET, "green"),
    ("env FOO=1 pytest", False, QUIET, "green"),
    ("time pytest -q", False, QUIET + "\nreal 0m1s\n", "green"),
    ("timeout 600 pytest -q", False, QUIET, "green"),
    ("docker compose exec web pytest -q", False, QUIET, "green"),
    ("docker compose run --rm app npm test", False, " Tests  12 passed (12)\n", "green"),
    ("docker exec app pytest", True, RED, "red"),
    ("pytest -q --no-header -p no:cacheprovider", False, QUIET, "green"),
    ("pytest -q -n4", False, "bringing up nodes...\n............   [100%]\n12 passed in 1s\n", "green"),
    (
        "pytest --cov=src --cov-report=term-missing -q | grep -E 'TOTAL|passed'",
        False,
        ("TOTAL 100 0 100%\n12 passed in 1s\n"),
        "unsure",
    ),
    (
        "python -m unittest",
        False,
        (
            "...\n"
            "----------------------------------------------------------------------\n"
            "Ran 3 tests in 0.001s\n"
            "\n"
            "OK\n"
        ),
        "green",
    ),
    (
        "python -m unittest discover -s tests -v",
        False,
        ("test_a (t.T.test_a) ... ok\n\n----\nRan 1 test in 0.000s\n\nOK\n"),
        "green",
    ),
    (
        "python manage.py test",
        False,
        (
            "Found 3 test(s).\n"
            "System check identified no issues (0 silenced).\n"
            "...\n"
            "Ran 3 tests in 0.1s\n"
            "\n"
            "OK\n"
            "Destroying test database\n"
        ),
        "green",
    ),
    ("./manage.py test app", False, "Ran 3 tests in 0.1s\n\nOK\n", "green"),
    (
        "go test ./...",
        False,
        ("ok  \texample.com/a\t0.003s\n?   \texample.com/b\t[no test files]\n"),
        "green",
    ),
    ("go test ./...", False, "?   \texample.com/b\t[no test files]\n", "unsure"),
    ("go test ./... -count=1", False, "ok  \texample.com/a\t0.003s [no tests to run]\n", "unsure"),
    (
        "go test -v ./...",
        False,
        ("=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \texample.com/a\t0.003s\n"),
        "green",
    ),
    ("go test -json ./... | jq .Action", False, '"pass"\n', "unsure"),
    ("go test ./... -run TestA -c", False, "", "not run"),
    (
        "go test -race -cover ./...",
        False,
        ("ok  \texample.com/a\t0.003s\tcoverage: 50% of statements\n"),
        "green",
    ),
    ("go vet ./... && go test ./...", False, "ok  \texample.com/a\t0.003s\n", "green"),
    (
        "cargo test",
        False,
        (
            "running 3 tests\n"
            "test a ... ok\n"
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
        ),
        "green",
    ),
    (
        "cargo test -q",
        False,
        (
            "running 3 tests\n"
            "...\n"
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
            "\n"
            "running 0 tests\n"
            "\n"
            "test result: ok. 0 passed; 0 failed; 0 ignored\n"
        ),
        "green",
    ),
    (
        "cargo test",
        False,
        ("running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured\n"),
        "unsure",
    ),
    (
        "cargo nextest run",
        False,
        (
            "    Starting 3 tests across 1 binary\n"
            "        PASS [   0.004s] a tests::a\n"
            "     Summary [   0.005s] 3 tests run: 3 passed, 0 skipped\n"
        ),
        "green",
    ),
    (
        "npm test",
        False,
        (
            "\n"
            "> a@1.0.0 test\n"
            "> jest\n"
            "\n"
            "PASS ./a.test.js\n"
            "  ✓ adds (2 ms)\n"
            "\n"
            "Test Suites: 1 passed, 1 total\n"
            "Tests:       1 passed, 1 total\n"
        ),
        "green",
    ),
    ("npm test --silent", False, "", "green"),
    (
        "npm test",
        False,
        (
            "> a@1.0.0 test\n"
            "> node --test\n"
            "\n"
            "✔ adds (0.5ms)\n"
            "\u2139 tests 3\n"
            "\u2139 suites 0\n"
            "\u2139 pass 3\n"
            "\u2139 fail 0\n"
            "\u2139 cancelled 0\n"
            "\u2139 skipped 0\n"
            "\u2139 todo 0\n"
        ),
        "green",
    ),
    (
        "node --test",
        False,
        "✔ adds (0.5ms)\n\u2139 tests 3\n\u2139 pass 3\n\u2139 fail 0\n\u2139 skipped 0\n",
        "green",
    ),
    ("npm test", False, "TAP version 13\nok 1 - adds\n1..1\n# tests 1\n# pass 1\n# fail 0\n", "green"),
    (
        "npx vitest run",
        False,
        (" ✓ src/a.test.ts (3 tests) 2ms\n\n Test Files  1 passed (1)\n      Tests  3 passed (3)\n"),
        "green",
    ),
    (
        "npx vitest run",
        False,
        (
            " ✓ src/a.test.ts (3 tests) 2ms\n"
            "\n"
            " Test Files  1 passed (1)\n"
            "      Tests  3 passed | 2 skipped (5)\n"
        ),
        "green",
    ),
    ("npx vitest run", False, "No test files found, exiting with code 0\n", "unsure"),
    ("npx jest --passWithNoTests", False, "No tests found, exiting with code 0\n", "unsure"),
    ("npx playwright test", False, "Running 3 tests using 2 workers\n\n  3 passed (2.1s)\n", "green"),
    (
        "npx playwright test",
        False,
        ("Running 3 tests using 2 workers\n\n  1 skipped\n  2 passed (2.1s)\n"),
        "green",
    ),
    ("npx mocha", False, "  a\n    ✔ adds\n\n  3 passing (5ms)\n  1 pending\n", "green"),
    ("yarn test", False, "yarn run v1.22\n$ jest\nTests: 3 passed, 3 total\nDone in 1.2s.\n", "green"),
    ("pnpm -r test", False, "packages/a test: 3 passing\n", "green"),
    ("pnpm --filter web test", False, "Tests 3 passed\n", "green"),
    ("npm run test:unit", False, "Tests: 3 passed\n", "green"),
    ("npm --prefix web test", False, "Tests: 3 passed\n", "green"),
    ("cd web && npm test -- --run", False, "Tests  3 passed (3)\n", "green"),
    (
        "bun test",
        False,
        (
            "bun test v1.1\n"
            "\n"
            "a.test.ts:\n"
            "✓ adds\n"
            "\n"
            " 3 pass\n"
            " 0 fail\n"
            " 3 expect() calls\n"
            "Ran 3 tests across 1 files. [10ms]\n"
        ),
        "green",
    ),
    (
        "deno test",
        False,
        ("running 3 tests from ./a_test.ts\nadds ... ok (1ms)\n\nok | 3 passed | 0 failed (10ms)\n"),
        "green",
    ),
    ("mix test", False, "...\nFinished in 0.02 seconds\n3 tests, 0 failures\n", "green"),
    ("mix test", False, ("Finished in 0.02 seconds\n1 doctest, 3 tests, 0 failures, 1 excluded\n"), "green"),
    ("bundle exec rspec", False, "...\n\nFinished in 0.1 seconds\n3 examples, 0 failures\n", "green"),
    (
        "rspec",
        False,
        ("No examples found.\n\nFinished in 0.0002 seconds\n0 examples, 0 failures\n"),
        "unsure",
    ),
    (
        "bin/rails test",
        False,
        (
            "Run options: --seed 1\n"
            "\n"
            "# Running:\n"
            "\n"
            "...\n"
            "\n"
            "3 runs, 3 assertions, 0 failures, 0 errors, 0 skips\n"
        ),
        "green",
    ),
    ("rake test", False, "3 runs, 3 assertions, 0 failures, 0 errors, 0 skips\n", "green"),
    ("./vendor/bin/phpunit", False, "...  3 / 3 (100%)\n\nOK (3 tests, 3 assertions)\n", "green"),
    ("phpunit", False, "No tests executed!\n", "unsure"),
    ("composer test", False, "OK (3 tests, 3 assertions)\n", "green"),
    (
        "mvn test",
        False,
        ("[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD SUCCESS\n"),
        "green",
    ),
    ("mvn -q test", False, "", "green"),
    (
        "mvn -B verify",
        False,
        ("[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD SUCCESS\n"),
        "green",
    ),
    (
        "mvn test",
        False,
        (
            "[INFO] Tests run: 0, Failures: 0, Errors: 0, Skipped: 0\n"
            "[INFO] No tests to run.\n"
            "[INFO] BUILD SUCCESS\n"
        ),
        "unsure",
    ),
    (
        "mvn test",
        False,
        (
            "[INFO] --- surefire:3.0:test (a) ---\n"
            "[INFO] No tests to run.\n"
            "[INFO] --- surefire:3.0:test (b) ---\n"
            "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\n"
            "[INFO] BUILD SUCCESS\n"
        ),
        "green",
    ),
    (
        "./gradlew test",
        False,
        ("> Task :test\n\nBUILD SUCCESSFUL in 2s\n3 actionable tasks: 1 executed\n"),
        "green",
    ),
    (
        "./gradlew test",
        False,
        ("> Task :compileTestJava NO-SOURCE\n> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 2s\n"),
        "unsure",
    ),
    (
        "./gradlew test",
        False,
        (
            "> Task :processTestResources NO-SOURCE\n"
            "> Task :testClasses\n"
            "> Task :test\n"
            "\n"
            "BUILD SUCCESSFUL in 2s\n"
        ),
        "green",
    ),
    (
        "./gradlew test",
        False,
        (
            "> Task :compileTestJava UP-TO-DATE\n"
            "> Task :processResources NO-SOURCE\n"
            "> Task :test UP-TO-DATE\n"
            "BUILD SUCCESSFUL in 1s\n"
        ),
        "green",
    ),
    (
        "dotnet test",
        False,
        ("Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3 - a.dll (net8.0)\n"),
        "green",
    ),
    (
        "dotnet test",
        True,
        ("Failed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3 - a.dll (net8.0)\n"),
        "red",
    ),
    ("dotnet test", False, "No test is available in a.dll.\n", "unsure"),
    (
        "ctest",
        False,
        (
            "Test project /b\n"
            "    Start 1: a\n"
            "1/1 Test #1: a ....   Passed    0.00 sec\n"
            "\n"
            "100% tests passed, 0 tests failed out of 1\n"
        ),
        "green",
    ),
    (
        "ctest --test-dir build --output-on-failure",
        False,
        ("100% tests passed, 0 tests failed out of 10\n"),
        "green",
    ),
    ("ctest", False, "Test project /b\nNo tests were found!!!\n", "unsure"),
    ("make test", False, "pytest -q\n............  [100%]\n12 passed in 1s\n", "green"),
    ("make test", False, "go test ./...\nok  \ta\t0.1s\n", "green"),
    ("make -n test", False, "pytest -q\n", "not run"),
    ("make check", False, "All checks passed!\n", "not run"),
    ("make -j4 test", False, "12 passed\n", "green"),
    ("make -C sub test", False, "12 passed\n", "green"),
    ("just test", False, "12 passed\n", "green"),
    ("tox", False, "  py312: OK (1.2 seconds)\n  congratulations :) (1.3 seconds)\n", "green"),
    ("tox -e py312", False, "12 passed\n  py312: OK (1s)\n", "green"),
    ("nox -s tests", False, "nox > Session tests was successful.\n", "green"),
    ("hatch test", False, "12 passed\n", "green"),
    ("poetry run pytest", False, QUIET, "green"),
    ("pdm run test", False, "12 passed\n", "green"),
    (
        "swift test",
        False,
        (
            "Test Suite 'All tests' passed at 2026\n"
            "\t Executed 3 tests, with 0 failures (0 unexpected) in 0.0 seconds\n"
        ),
        "green",
    ),
    ("xcodebuild test -scheme A", False, "** TEST SUCCEEDED **\n", "green"),
    ("flutter test", False, "00:01 +3: All tests passed!\n", "green"),
    ("dart test", False, "00:01 +3: All tests passed!\n", "green"),
    (
        "bazel test //...",
        False,
        ("//a:test  PASSED in 0.1s\n\nExecuted 1 out of 1 test: 1 test passes.\n"),
        "green",
    ),
    (
        "sbt test",
        False,
        ("[info] Passed: Total 3, Failed 0, Errors 0, Passed 3\n[success] Total time\n"),
        "green",
    ),
    ("zig build test", False, "", "green"),
    ("zig test a.zig", False, "All 3 tests passed.\n", "green"),
    ("cabal test", False, ("Test suite a: PASS\n1 of 1 test suites (1 of 1 test cases) passed.\n"), "green"),
    ("stack test", False, "3 examples, 0 failures\n", "green"),
    ("lein test", False, "Ran 3 tests containing 3 assertions.\n0 failures, 0 errors.\n", "green"),
    ("meson test -C build", False, "Ok:                 3\nFail:               0\n", "green"),
    ("busted", False, "3 successes / 0 failures / 0 errors\n", "green"),
    ("bats test", False, "1..3\nok 1 a\nok 2 b\n", "green"),
    ("prove -r t", False, "All tests successful.\nFiles=3, Tests=10\nResult: PASS\n", "green"),
    ("turbo run test", False, "Tasks: 3 successful, 3 total\n", "green"),
    ("npx turbo test", False, "Tests 3 passed\nTasks: 3 successful\n", "green"),
    ("nx test web", False, "Successfully ran target test for project web\n", "green"),
    ("npx nx run-many -t test", False, "Successfully ran target test for 3 projects\n", "green"),
    ("npx tsc --noEmit && npm test", False, "Tests: 3 passed\n", "green"),
    ("npm run lint && npm test && npm run build", False, "Tests: 3 passed\n", "green"),
    ("python -m pytest tests/test_a.py -q 2>&1 | tail -3; echo done", False, QUIET, "green"),
    ("pytest -q || true", False, QUIET, "green"),
    ("pytest -q || true", False, RED, "red"),
    ("pytest -q; true", False, "", "unsure"),
    ("set -o pipefail; pytest -q | tail -3", False, QUIET, "green"),
    ("pytest -q > out.txt 2>&1; tail -3 out.txt", False, "12 passed in 1s\n", "green"),
    ("pytest -q > /tmp/o 2>&1 && echo OK", False, "OK\n", "green"),
    ("(cd sub && pytest -q)", False, QUIET, "green"),
    ("for p in a b; do (cd $p && pytest -q); done", False, QUIET * 2, "green"),
    ("for p in a b; do (cd $p && pytest -q); done", False, RED + QUIET, "red"),
    ("if pytest -q; then echo good; fi", False, QUIET + "good\n", "green"),
    ("! pytest -q", False, RED, "red"),
    ("pytest -q &\nwait", False, QUIET, "green"),
    (
        "pytest --collect-only -q",
        False,
        ("tests/test_a.py::test_x\n\n12 tests collected in 0.01s\n"),
        "not run",
    ),
    ("pytest -q -k nothing", True, "12 deselected in 0.01s\n", "red"),
    (
        "pytest",
        False,
        ("collected 3 items\n\ntests/test_a.py sss  [100%]\n\n========= 3 skipped in 0.01s =========\n"),
        "unsure",
    ),
    ("pytest", False, "12 passed, 3 skipped, 1 warning in 2.3s\n", "green"),
    ("pytest -q", False, "..ss..  [100%]\n4 passed, 2 skipped in 0.1s\n", "green"),
    ("pytest -q", False, "xx  [100%]\n2 xfailed in 0.1s\n", "green"),
    (
        "pytest tests/ -q --tb=short --color=yes",
        False,
        (
            "\x1b[32m.\x1b[0m\x1b[32m                [100%]\x1b[0m\n"
            "\x1b[32m\x1b[32m\x1b[1m12 passed\x1b[0m\x1b[32m in 0.1s\x1b[0m\x1b[0m\n"
        ),
        "green",
    ),
    ("bash -c 'pytest -q'", False, QUIET, "green"),
    ('bash -lc "cd x && pytest -q"', False, QUIET, "green"),
    ("sh test.sh", False, "12 passed\n", "not run"),
    ("./run_tests.sh", False, "12 passed\n", "not run"),
    ("bash scripts/test.sh", False, "ok\n", "not run"),
    ("bash <<'EOF'\ncd x\npytest -q\nEOF", False, QUIET, "green"),
    ("sudo -u web bash -c 'make test | tail -1'", False, "", "unsure"),
    ('echo "$(make test)"', False, "", "unsure"),
    ("said=$(make test)", False, "", "green"),
    ("ssh host pytest -q", False, QUIET, "green"),
    ("watch pytest", False, "", "not run"),
    ("xvfb-run -a npm test", False, "Tests: 3 passed\n", "green"),
    ("conda run -n x pytest", False, QUIET, "green"),
    ("nix develop -c pytest", False, QUIET, "green"),
    ("direnv exec . pytest", False, QUIET, "green"),
    ("mise exec -- pytest", False, QUIET, "green"),
    ("dotenv -f .env run -- pytest", False, QUIET, "green"),
    ("coverage run -m pytest", False, QUIET, "green"),
    ("python -m coverage run -m pytest -q && coverage report", False, QUIET, "green"),
    ("pipenv run pytest", False, QUIET, "green"),
    ("rye test", False, QUIET, "green"),
    ("uvx pytest", False, QUIET, "green"),
    ("uvx --with pytest-cov pytest -q", False, QUIET, "green"),
    ("git stash && pytest -q; git stash pop", False, QUIET + "Dropped\n", "green"),
    ("git commit -m 'fix pytest run'", False, "[main abc] fix\n", "not run"),
    ("grep -rn 'pytest' .", False, "a: pytest\n", "not run"),
    ("pip install pytest", False, "Successfully installed pytest\n", "not run"),
    ("uv add --dev pytest", False, "+ pytest\n", "not run"),
    ("uv pip install pytest", False, "", "not run"),
    ("npm install --save-dev jest", False, "added 200 packages\n", "not run"),
    ("npm i -D vitest", False, "added\n", "not run"),
    ("which pytest", False, "/usr/bin/pytest\n", "not run"),
    ("pytest --version", False, "pytest 8\n", "not run"),
    ("cat pytest.ini", False, "", "not run"),
    ("echo pytest", False, "pytest\n", "not run"),
    ("python - <<'EOF'\nprint('pytest')\nEOF", False, "pytest\n", "not run"),
    ("cat > run.sh <<EOF\npytest -q\nEOF\nbash run.sh", False, QUIET, "not run"),
    (
        "mkdir -p build && cd build && cmake .. && make && ctest",
        False,
        ("100% tests passed, 0 tests failed out of 3\n"),
        "green",
    ),
    ("pytest -q && git add -A && git commit -m x", False, QUIET + "[main abc] x\n", "green"),
    ("pytest -q; git status", False, QUIET + "On branch main\n", "green"),
    ("git diff; pytest -q | tail -1", False, "12 passed in 1s\n", "green"),
    ("pytest -q test_a.py 2>&1 | head -30", False, QUIET, "green"),
    ("make test 2>&1 | tail -20", False, "make: *** [test] Error 1\n", "red"),
    ("npm test 2>&1 | tail -20", False, "Tests:       1 failed, 2 passed, 3 total\n", "red"),
    (
        "npm test 2>&1 | tail -3",
        False,
        ("npm ERR! code 1\nnpm ERR! Test failed.  See above for more details.\n"),
        "red",
    ),
    (
        "npm test 2>&1 | tail -3",
        False,
        ("npm error code 1\nnpm error path /x\nnpm error command failed\n"),
        "red",
    ),
    (
        "node --test | tail -8",
        False,
        (
            "\u2139 tests 3\n"
            "\u2139 suites 0\n"
            "\u2139 pass 2\n"
            "\u2139 fail 1\n"
            "\u2139 cancelled 0\n"
            "\u2139 skipped 0\n"
            "\u2139 todo 0\n"
            "\u2139 duration_ms 50\n"
        ),
        "red",
    ),
    ("mix test | tail -2", False, "3 tests, 1 failure\n", "red"),
    ("bundle exec rspec | tail -3", False, "3 examples, 1 failure\n", "red"),
    ("bun test 2>&1 | tail -4", False, " 2 pass\n 1 fail\nRan 3 tests across 1 files.\n", "red"),
    (
        "mvn test | tail -5",
        False,
        ("[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0\n[INFO] BUILD FAILURE\n"),
        "red",
    ),
    ("./gradlew test | tail -3", False, "BUILD FAILED in 2s\n", "red"),
    (
        "dotnet test | tail -1",
        False,
        ("Failed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3\n"),
        "red",
    ),
    ("ctest | tail -4", False, "67% tests passed, 1 tests failed out of 3\n", "red"),
    ("python -m unittest 2>&1 | tail -2", False, ("Ran 3 tests in 0.0s\n\nFAILED (failures=1)\n"), "red"),
    ("phpunit | tail -3", False, "FAILURES!\nTests: 3, Assertions: 3, Failures: 1.\n", "red"),
    ("deno test | tail -2", False, "FAILED | 2 passed | 1 failed (10ms)\n", "red"),
    ("cargo test | tail -2", False, "error: test failed, to rerun pass `--lib`\n", "red"),
    ("rake test | tail -1", False, "3 runs, 3 assertions, 1 failures, 0 errors, 0 skips\n", "red"),
    (
        "npx vitest run | tail -4",
        False,
        (" Test Files  1 failed (1)\n      Tests  1 failed | 2 passed (3)\n"),
        "red",
    ),
    ("sbt test | tail -2", False, "[error] Failed: Total 3, Failed 1, Errors 0, Passed 2\n", "red"),
    ("flutter test | tail -1", False, "00:01 +2 -1: Some tests failed.\n", "red"),
    (
        "swift test | tail -1",
        False,
        ("Executed 3 tests, with 1 failure (0 unexpected) in 0.0 seconds\n"),
        "red",
    ),
    ("pytest -q | tail -1", False, "1 error in 0.2s\n", "red"),
    ("pytest | tail -1", False, "===== 12 passed, 1 error in 0.2s =====\n", "red"),
    (
        "pytest | tail -2",
        False,
        ("!!!!! Interrupted: 1 error during collection !!!!!\n==== 1 error in 0.2s ====\n"),
        "red",
    ),
    ("pytest -q | tail -2", False, "no tests ran in 0.01s\n", "unsure"),
    ("pytest -q 2>&1 | tail -1", False, "2 passed, 1 error in 0.06s\n", "red"),
    (
        "pytest -q; echo exit=$?",
        False,
        ("..E\nERROR t/test_a.py::test_db - RuntimeError\n2 passed, 1 error in 0.06s\nexit=1\n"),
        "red",
    ),
    ("pytest -q || true", False, "2 passed, 3 errors in 0.06s\n", "red"),
    ("pytest 2>&1 | tail -3", False, "=== 2 passed, 1 error in 0.09s ===\n", "red"),
    (
        "pytest -q 2>&1 | tail -4",
        False,
        (
            "ERROR tests/test_b.py - ModuleNotFoundError: No module named 'x'\n"
            "!!! Interrupted: 1 error during collection !!!\n"
            "1 error in 0.2s\n"
        ),
        "red",
    ),
    ("make test; echo exit code $?", False, "exit code 1\n", "red"),
    ('make test; echo "exit code $?"', False, "exit code 0\n", "green"),
    ("make test | tail -3; echo exit=$?", False, "exit=0\n", "unsure"),
    ("make test | tail -3; echo exit=${PIPESTATUS[0]}", False, "exit=2\n", "red"),
    ("make test; echo exit=$?; git status; echo exit=$?", False, "exit=2\nexit=0\n", "red"),
    ("make test; echo exit=$?; git push; echo exit=$?", False, "exit=0\nexit=1\n", "unsure"),
    ("make test || echo failed $?", False, "failed 2\n", "red"),
    (
        "for one in a b; do pytest -q $one; echo exit=$?; done",
        False,
        ("2 passed, 1 error in 0.1s\nexit=1\n2 passed in 0.1s\nexit=0\n"),
        "red",
    ),
    ("pytest -q; echo exit=$?", False, "exit=1\n3 passed in 0.1s\nexit=0\n", "green"),
    ("npm test", False, "\n> shop@1.0.0 test\n> node check.js\n\nall well\n", "green"),
    (
        "mvn test",
        False,
        ("[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 3\n[INFO] Tests are skipped.\n"),
        "unsure",
    ),
    (
        "go test -json ./...",
        False,
        ('{"Action":"pass","Package":"shed","Test":"TestDoor","Elapsed":0}\n'),
        "green",
    ),
    ("pytest -qq", False, "..s..x..  [100%]\n", "green"),
    ("pytest", False, "WARNING 1 error in 3 files is expected\n3 passed in 0.1s\n", "green"),
    ("make -C tests build", False, "cc door.c\n", "not run"),
    ("npm --prefix web install test-tools", False, "added 3 packages\n", "not run"),
    ("npm --prefix a test", False, "3 passed\n", "green"),
    ("bin/rails test | tail -1", False, ("3 runs, 3 assertions, 0 failures, 1 errors, 0 skips\n"), "red"),
    ("bundle exec rspec", False, "***\n\n3 examples, 0 failures, 3 pending\n", "unsure"),
    ("bats test | tail -2", False, "ok 1 hangs\nnot ok 2 opens\n", "red"),
    ("prove -r t | tail -1", False, "Result: FAIL\n", "red"),
    ("mvn -B -pl core clean verify 2>&1 | tail -20", False, "[INFO] BUILD FAILURE\n", "red"),
    ("git commit -m 'prove that make -C sub test passes'", False, "[main abc] x\n", "not run"),
)


def verdict(command: str, failed: bool, output: str) -> str:
    if "test" not in check_kinds(command):
        return "not run"
    checks = Checks()
    checks.ran(1, command, failed, output)
    run = checks.test(lambda _: ())
    if run is None:
        return "not run"
    return "red" if not run.passed else "unsure" if run.unsure else "green"


@pytest.mark.parametrize(("command", "failed", "output", "said"), RUNS)
def test_what_the_output_of_a_runner_says(command: str, failed: bool, output: str, said: str) -> None:
    assert verdict(command, failed, output) == said


@pytest.mark.parametrize("opening", ["$(", "`a $(", "(", "x=$(", "<("])
def test_a_command_that_is_nested_too_deeply_is_passed_over(opening: str) -> None:
    command = f"pytest {opening * 1000}"
    for read in (check_kinds, may_write_code):
        read(command)  # and raises nothing
