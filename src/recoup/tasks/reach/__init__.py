"""The paper's reaching task: a humanoid upper body in MuJoCo."""
