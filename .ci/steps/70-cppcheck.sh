# cppcheck has nothing to say about what ships.
set -euo pipefail
cppcheck --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
    --std=c11 --quiet -j 2 -I lib -I include -I "$ci_folder/clang/include" \
    lib filters demo_app tools
