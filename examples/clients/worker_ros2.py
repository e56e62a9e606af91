"""A ROS 2 node: sets a trial's parameters on /controller, waits for /episode_return, tells it.

RECOUP_TOKEN=... ros2 run MY_PACKAGE worker_ros2 --ros-args -p url:=http://HOST:8765/v1/studies/NAME
"""

import rclpy
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from rclpy.wait_for_message import wait_for_message
from std_msgs.msg import Float64

import recoup  # asks again, with the same key, until there is an answer

rclpy.init()
node = rclpy.create_node("recoup_worker")
study = recoup.connect(node.declare_parameter("url", "").value, patience=3600)
controller = AsyncParameterClient(node, "/controller")
controller.wait_for_services()
while rclpy.ok():
    for trial in study.ask(lease=600, worker=node.get_name()):
        gains = [Parameter(name, value=value) for name, value in trial.params.items()]
        done = controller.set_parameters_atomically(gains)
        rclpy.spin_until_future_complete(node, done)
        if not done.result().result.successful:
            study.tell(trial.id, failed=f"refused: {done.result().result.reason}"[:300])
            continue
        came, message = wait_for_message(Float64, node, "/episode_return", time_to_wait=300)
        result = {"value": message.data} if came else {"failed": "no return within 300 s"}
        study.tell(trial.id, **result)
