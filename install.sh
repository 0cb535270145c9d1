#!/usr/bin/env bash
# Make .venv in this folder with nmt-align and all it needs: ./install.sh [EXTRAS], for example ./install.sh test,hf
#
# fairseq-fixed has no wheel for Python 3.11, and its isolated build would download a PyTorch of its own. So PyTorch goes
# in first and fairseq is built against it. READTHEDOCS=1 is fairseq's own switch to leave its C++ parts out: only
# training needs them (FAIRSEQ_NATIVE=1 builds them). See CONTRIBUTING.md.
set -euo pipefail
cd "$(dirname "$0")"
extras=${1:-}
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed (PYTHON=...)" >&2; exit 1; }
[ -x .venv/bin/python ] || "$python" -m venv .venv
pip() { .venv/bin/python -m pip --disable-pip-version-check -q "$@"; }
# TORCH may name another release or index: TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu".
# shellcheck disable=SC2086
.venv/bin/python -c 'import torch' 2>/dev/null || pip install ${TORCH:-torch==2.13.0}
pip install 'setuptools>=77' wheel cython numpy
if [ -z "${FAIRSEQ_NATIVE:-}" ]; then export READTHEDOCS=1; fi
pip install --no-build-isolation fairseq-fixed==0.12.3.1
pip install --no-build-isolation -e ".${extras:+[$extras]}"
# fairseq declares torchaudio for its speech code. Beside a CPU build of PyTorch the one from PyPI cannot be loaded, and
# transformers fails as soon as it finds it. Nothing here needs it.
pip uninstall -y torchaudio
