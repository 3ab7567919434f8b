import type { Figures } from '../budget/goals.ts'
import { describeNoise, isNoisy, type Noise } from './noise.ts'

export type Attempt = { figures: Figures; noise: Noise }

/** A section that was disturbed is measured once more; if it is disturbed again, its figures are marked. */
export async function repeatIfNoisy(
  attempt: () => Promise<Attempt>,
  { mayRepeat }: { mayRepeat: boolean },
): Promise<Figures> {
  const first = await attempt()
  if (!isNoisy(first.noise)) return first.figures
  if (!mayRepeat) return marked(first)
  console.log(`Disturbed: ${describeNoise(first.noise)}. Measuring once more.`)
  const second = await attempt()
  return isNoisy(second.noise) ? marked(second) : second.figures
}

function marked({ figures, noise }: Attempt): Figures {
  console.log(`Disturbed: ${describeNoise(noise)}. The figures are marked as noisy.`)
  const entries = Object.entries(figures)
  return Object.fromEntries(entries.map(([name, figure]) => [name, { ...figure, isNoisy: true }]))
}
