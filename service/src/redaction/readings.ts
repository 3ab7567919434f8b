import type { ScannedText } from './text-view.ts'

/** What a reader may see between the parts of a text, and between the texts of one speaker. */
export type Seam = 'part' | 'message'
type Joint = Readonly<Record<Seam, string>>
export const joints: readonly Joint[] = [
  { part: '', message: '\n' },
  { part: '', message: '' },
  { part: '\n', message: '\n' },
]

export type Reading = { readonly view: ScannedText; joints: readonly Joint[] }

/** Without those that have become the same as another one: they divide again where they differ. */
export function unite(readings: readonly Reading[]): Reading[] {
  const united: Reading[] = []
  for (const reading of readings) {
    const { view } = reading
    const same = united.find((one) => one.view.depth === view.depth && one.view.agreesWith(view))
    if (same) same.joints = [...same.joints, ...reading.joints]
    else united.push({ ...reading })
  }
  return united.filter(({ view, joints: own }) => {
    const isGone = united.some(
      (one) =>
        one.joints.length === own.length &&
        own.every((joint) => one.joints.includes(joint)) &&
        one.view.replaces(view),
    )
    return !isGone
  })
}

/** The ways to read a text that have been the same so far, and are not with what stands between two parts. */
export function divide({ view, joints }: Reading, seam: Seam): Reading[] {
  const byGlue = Map.groupBy(joints, (joint) => joint[seam])
  const divided = Array.from(byGlue, ([glue, same], number) => ({
    glue,
    reading: { view: number === 0 ? view : view.fork(), joints: same },
  }))
  for (const { glue, reading } of divided) reading.view.join(glue)
  return divided.map(({ reading }) => reading)
}
