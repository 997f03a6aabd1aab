"""Plans by simulation: the numbers of any policy, chosen from simulated runs."""

from cafe.tuning.halving import SearchResult
from cafe.tuning.measured_setting import MeasuredSetting
from cafe.tuning.policy_plan import PolicyPlan, plan_policy

__all__ = ["MeasuredSetting", "PolicyPlan", "SearchResult", "plan_policy"]
