import { toMarkdown } from '../table.ts'
import { type Figure, type Figures, type Goal, type GoalName, goals } from './goals.ts'

/** Each goal with the figure of this run, as docs/benchmarks.md shows them; a goal that was not measured is not shown. */
export function budgetTableOf(figures: Figures): string {
  const rows = Object.entries(goals).flatMap(([name, goal]: [string, Goal]) => {
    const figure = figures[name as GoalName]
    return figure ? [rowOf(goal, figure)] : []
  })
  return toMarkdown([['Figure', 'Goal', 'Measured', 'Median', ''], ...rows])
}

function rowOf(goal: Goal, figure: Figure): string[] {
  const { what, unit, aim } = goal
  const { value, median, holds = isWithin(goal, value), isNoisy = false } = figure
  const [name, suffix] = unit.startsWith('÷') ? [`${what} ${unit}`, ''] : [what, ` ${unit}`]
  const shown = (number: number) => `${number.toFixed(2)}${suffix}`.trimEnd()
  return [
    name,
    `${describeBound(goal)}${suffix}${aim === undefined ? '' : ` (aim ${aim})`}`.trimEnd(),
    shown(value),
    median === undefined ? '' : shown(median),
    `${holds ? 'holds' : 'MISSES'}${isNoisy ? ', noisy' : ''}`,
  ]
}

const isWithin = (goal: Goal, value: number) =>
  'atMost' in goal ? value <= goal.atMost : value >= goal.atLeast

const describeBound = (goal: Goal) =>
  'atMost' in goal ? `at most ${goal.atMost}` : `at least ${goal.atLeast}`
