import type { Coding } from './console-files.ts'

/** The first of the file's codings that the browser takes; null: none, the file as it is. */
export function chooseCoding(
  accepted: string | string[] | undefined,
  codings: readonly Coding[],
): Coding | null {
  const names = new Set(
    [accepted ?? '']
      .flat()
      .flatMap((text) => text.split(','))
      .map((each) => each.split(';').map((part) => part.trim().toLowerCase()))
      .filter(([, quality]) => !/^q=0(\.0*)?$/.test(quality ?? ''))
      .map(([name]) => name),
  )
  return codings.find((coding) => names.has(coding)) ?? null
}
