import { loadEngine } from './engine.ts'
import { serveEngine } from './server.ts'

const modelPath = process.env['LLAMA_MODEL_PATH']
if (!modelPath) throw new Error('LLAMA_MODEL_PATH must name the file of the model.')

const url = await serveEngine(await loadEngine(modelPath), Number(process.env['PORT'] ?? 0))
process.send?.(url)
console.log(url)

// The engine keeps the process alive and has nothing to save.
const end = () => process.exit(0)
process.once('disconnect', end).once('SIGTERM', end).once('SIGINT', end)
