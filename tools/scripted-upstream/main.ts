import { startScriptedUpstream } from './server.ts'

// Runs in a process of its own, so that it takes no CPU time from the process that measures it.
const upstream = await startScriptedUpstream({ port: Number(process.env['PORT'] ?? 0) })
process.send?.(upstream.url)
console.log(upstream.url)

const end = () => void upstream.stop().then(() => process.exit(0))
process.once('disconnect', end).once('SIGTERM', end).once('SIGINT', end)
