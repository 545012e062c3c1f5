"""Run programs, each in a process of its own, and store their losses: `run.py FOLDER STEPS MODE NAME…`."""
import importlib
import json
import os
import resource
import sys
import tempfile
import time
import traceback

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import alike
import torch
from drivers import PROGRAMS

for each in ("scripts", "pictures", "sequences", "others", "practice"):
    importlib.import_module(each)


def losses_of(program, steps, mode):
    """What is stored of one program: its losses, or the error that ended it."""
    with alike.prepare():
        os.chdir(tempfile.mkdtemp())
        if program.script:
            losses = alike.recorded_losses(steps)
            try:
                program.make()
            except alike.Enough:
                pass
            return {"losses": losses}
        step, batch = program.make()
        if mode != "eager":
            import compiled

            return getattr(compiled, mode)(step, batch, steps)
        losses = alike.recorded_losses(10**9)
        results = [step(*batch()) for _ in range(steps)]
        return {"losses": losses if results[0] is None else [float(each) for each in results]}


def run(program, path, steps, mode):
    """Run one program in this process and write what came of it."""
    found, start = {}, time.process_time()
    try:
        found = losses_of(program, steps, mode)
    except BaseException as error:
        found = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
    found["seconds"] = time.process_time() - start
    with open(path, "w") as out:
        json.dump(found, out)


def main(folder, steps, mode, *names):
    torch.set_num_threads(1)
    parameter = torch.zeros(1, requires_grad=True)
    parameter.sum().backward()
    torch.optim.Adam([parameter]).step()

    os.makedirs(folder, exist_ok=True)
    if mode == "about":
        about = {name: {key: getattr(each, key) for key in ("repository", "files", "script", "changed")}
                 for name, each in PROGRAMS.items()}
        with open(os.path.join(folder, "about.json"), "w") as out:
            json.dump(about, out)
        return
    for name in names or PROGRAMS:
        path = os.path.abspath(os.path.join(folder, f"{name}.json"))
        if os.path.exists(path):
            os.remove(path)
        child = os.fork()
        if not child:
            resource.setrlimit(resource.RLIMIT_CPU, [int(os.environ.get("LIMIT", "60"))] * 2)
            run(PROGRAMS[name], path, int(steps), mode)
            os._exit(0)
        os.waitpid(child, 0)
        print(name, flush=True)


main(*sys.argv[1:])
