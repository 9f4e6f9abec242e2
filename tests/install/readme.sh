#!/usr/bin/env bash
# Follow the README in a new folder, with a virtual environment of its own (about two minutes):
#
#   bash tests/install/readme.sh FOLDER
#
# Commands and Python code are the README's; the table and the module that they need are made here.
set -euo pipefail
folder=${1:?name a folder that does not exist yet}
clone=$(cd "$(dirname "$0")/../.." && pwd)

# Print the first block of code of a kind that has a word in it.
block() {
  awk -v kind="\`\`\`$1" -v word="$2" '
    /^```/ { if (!on) { on = ($0 == kind) ? 2 : 1; text = ""; next }
             if (on == 2 && index(text, word)) { printf "%s", text; exit }
             on = 0; next }
    on == 2 { text = text $0 "\n" }' "$clone/README.md"
}

mkdir "$folder"
python3 -m venv "$folder/venv"
PATH="$folder/venv/bin:$PATH"
cd "$clone"
PIP_QUIET=1 bash -euxc "$(block "" "pip install")"
cd "$folder"
python - <<< "$(block python CompressiveKMeans)" | tee printed.txt
diff printed.txt <(block text "differential privacy")

python - << 'END'
import numpy as np

rng = np.random.default_rng(0)
customer = rng.integers(0, 5000, 20_000)
is_old = (rng.random(5000) < 0.4)[customer]
age, income = np.where(is_old, 68, 33), np.where(is_old, 30_000, 90_000)
table = np.column_stack([customer, age + rng.normal(0, 5, 20_000), income + rng.normal(0, 9e3, 20_000)])
np.savetxt("customers.csv", table, "%d", ",", header="customer,age,income", comments="")
END
cat > mymodule.py << 'END'
pair = (0.0, 1.0)


def mechanism(data, rng):
    return data + rng.laplace(scale=1.0)
END
bash -euxc "$(block "" "privclust cluster")"
ls out
bash -euxc "$(block "" "privclust audit")"
