import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

import { fileError } from './file-error.ts'

type Options = {
  path: string
  /** What the file has, and the setting that names it: for the error at the start. */
  title: string
  setting: string
  /** What the operator can do about a file that cannot be read. */
  remedy: string
  maxKib: number
  everyMs?: number | undefined
  /** Puts the text in force; throws where it cannot be used. Returns whether something has changed. */
  take(text: string, wasUnusable: boolean): boolean
  onChanged(): void
  onUnusable(error: unknown): void
  /** 1 while the last good text is in force instead of the file. */
  isStale: { set(value: 0 | 1): void }
}

/**
 * Follows a file that the operator edits. It is read every two seconds; while it cannot be used, what was last taken stays in force,
 * and each problem is reported once. At the start the file must be good. A read that takes longer is never overtaken by the
 * next one, so an older text cannot replace a newer one.
 */
export function followFile(options: Options) {
  const { path, title, setting, remedy, maxKib, everyMs = 2000, isStale } = options
  const most = maxKib < 1024 ? `${maxKib} KiB` : `${maxKib / 1024} MiB`
  let lastProblem = ''
  let isReading = false

  function explain(error: unknown): string {
    const { message, code } = error as NodeJS.ErrnoException
    return code === undefined ? message : `  the file: cannot be read (${code}); ${remedy}`
  }

  function take(text: string, wasUnusable: boolean): boolean {
    if (text.length > maxKib * 1024) throw fileError([`the file: is larger than ${most}`])
    return options.take(text, wasUnusable)
  }

  try {
    take(readFileSync(path, 'utf8'), false)
  } catch (error) {
    throw new Error(`Bad ${title} in ${setting} (${path}):\n${explain(error)}`)
  }

  async function look() {
    if (isReading) return
    isReading = true
    try {
      const hasChanged = take(await readFile(path, 'utf8'), lastProblem !== '')
      lastProblem = ''
      isStale.set(0)
      if (hasChanged) options.onChanged()
    } catch (error) {
      const problem = explain(error)
      if (problem === lastProblem) return
      lastProblem = problem
      isStale.set(1)
      options.onUnusable(error)
    } finally {
      isReading = false
    }
  }

  const timer = setInterval(() => void look(), everyMs).unref()
  return { stop: () => clearInterval(timer) }
}
