"""The settings files that every generated project begins with."""

PYPROJECT = """[project]
name = "shop"
version = "0.1.0"
dependencies = ["requests>=2"]

[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = "-q --strict-markers"

[tool.coverage.run]
branch = true
omit = ["build/*"]

[tool.coverage.report]
fail_under = 90

[tool.ruff.lint]
select = ["E", "F", "I", "B"]
ignore = ["E501"]

[tool.mypy]
strict = true
disallow_untyped_defs = true
"""
CI_PYTHON = """name: ci
on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-22.04
    steps:
      - uses: actions/checkout@v3
      - uses: actions/setup-python@v4
        with:
          python-version: "3.11"
      - run: pip install -e .
      - run: ruff check .
      - run: pytest --cov=shop
"""
CI_SCRIPT = """name: ci
on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-22.04
    steps:
      - uses: actions/checkout@v3
      - run: npm ci
      - run: npm run lint
      - name: Test
        run: npm test
"""
JEST = """module.exports = {
  testEnvironment: 'node',
  testMatch: ['**/*.test.[jt]s', '**/*.spec.[jt]s'],
  coverageThreshold: { global: { branches: 80, lines: 90 } },
};
"""
VITEST = """import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    environment: 'node',
    include: ['src/**/*.{test,spec}.{js,ts}', 'test/**/*.test.{js,ts}', 'tests/**/*.test.{js,ts}'],
    coverage: { thresholds: { lines: 90, branches: 85 } },
  },
});
"""
