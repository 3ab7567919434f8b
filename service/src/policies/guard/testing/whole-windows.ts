import { normalise } from '#text/normalise.ts'
import type { WindowGrid } from '#text/windows/window-grid.ts'

/** The windows of a complete text by their definition, with the original offset at which each starts. */
export function windowsOfWhole(
  original: string,
  grid: WindowGrid,
): { text: string; start: number }[] {
  const { text, originalOffset } = normalise(original)
  const windows: { text: string; start: number }[] = []
  for (let start = 0; start < text.length;) {
    const end =
      start + lengthOfWindow(text.slice(start), grid.steps[windows.length] ?? grid.steps.at(-1)!)
    const overlap = text
      .slice(Math.max(0, start - grid.overlap), start)
      .replace(/^[\udc00-\udfff]/, '')
    windows.push({ text: overlap + text.slice(start, end), start: originalOffset(start) })
    start = end
  }
  return windows
}

function lengthOfWindow(rest: string, least: number): number {
  const extension = /^[^ ]*/.exec(rest.slice(least, least + 32))![0].length
  if (extension < 32) return Math.min(least + extension, rest.length)
  if (rest.length <= least + 32) return rest.length
  const isPairSplit = /[\ud800-\udbff][\udc00-\udfff]/.test(rest.slice(least + 31, least + 33))
  return least + 32 - (isPairSplit ? 1 : 0)
}
