import { writeFile } from 'node:fs/promises'
import { Session } from 'node:inspector/promises'
import { isMainThread } from 'node:worker_threads'

// Loaded into a process before its own code. The first SIGUSR2 starts a profile of its main thread, the second writes
// it to PROFILE_FILE, so that the profile covers the load and not the startup.

const file = process.env['PROFILE_FILE']
let session: Session | undefined

async function toggle() {
  if (!session) {
    session = new Session()
    session.connect()
    await session.post('Profiler.enable')
    await session.post('Profiler.setSamplingInterval', { interval: 200 })
    await session.post('Profiler.start')
    return
  }
  const { profile } = await session.post('Profiler.stop')
  session.disconnect()
  session = undefined
  if (file) await writeFile(file, JSON.stringify(profile))
}

if (isMainThread) process.on('SIGUSR2', () => void toggle())
