import { toTable } from '../table.ts'
import { type Figures, type Goal, type GoalName, goals } from './goals.ts'

/** Each goal with the figure of this run; a goal that this run did not measure is not shown. */
export function budgetTableOf(figures: Figures): string {
  const rows = Object.entries(goals).flatMap(([name, goal]: [string, Goal]) => {
    const figure = figures[name as GoalName]
    if (!figure) return []
    const { value, holds = value <= goal.atMost } = figure
    const aim = goal.aim === undefined ? '' : ` (aim ${goal.aim})`
    const verdict = holds ? 'holds' : 'MISSES'
    return [[goal.what, `${goal.atMost}${aim}`, value.toFixed(2), goal.unit, verdict]]
  })
  return toTable([['budget', 'at most', 'measured', '', ''], ...rows])
}
