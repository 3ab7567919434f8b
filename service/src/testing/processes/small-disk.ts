import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

/** Disks can be mounted by root only, and not in every container. */
export const canMount = (() => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-mount-'))
  try {
    mount(folder, 'size=4k')
    execFileSync('umount', [folder])
    return true
  } catch {
    return false
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})()

/** Why a test is skipped. */
export const cannotMount = 'needs root to mount tmpfs'

function mount(folder: string, options: string) {
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder], { stdio: 'ignore' })
}

/** A disk in memory, mounted with these options; unmounted when the test ends. */
export function mountDisk(options: string) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-disk-'))
  mount(folder, options)
  onTestFinished(() => {
    execFileSync('umount', ['--lazy', folder])
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}
