import { once } from 'node:events'

import { createServer } from 'vite'

import { freePort } from '../free-port.ts'
import { readOptions, refuse } from '../help/read-options.ts'
import { useSources } from '../program.ts'
import { startStack } from '../start-stack.ts'
import { seedOrganization } from './seed-organization.ts'
import { takeShots } from './shots.ts'
import { viteSettings } from './vite-settings.ts'

/** Vite's server with a stack behind it: a change of the console's sources is seen at once. */
async function serve() {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  useSources()
  const stack = await startStack({ environment: { PUBLIC_URL: url } })
  const { base_url: target, admin_key: adminKey } = stack.description
  await seedOrganization({ baseUrl: target, adminKey })
  const proxied = ['/v1', '/api', '/auth'].map((path) => [path, { target }] as const)
  const server = await createServer({
    ...viteSettings,
    server: { host: '127.0.0.1', port, strictPort: true, proxy: Object.fromEntries(proxied) },
  })
  try {
    await server.listen()
    console.log(
      `The console is at ${url}/console/\nSign in with the key ${adminKey}\nCtrl-C stops it.`,
    )
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
  } finally {
    await server.close()
    await stack.stop()
  }
}

const { positionals } = readOptions('console', { allowPositionals: true, options: {} })
const [what, ...more] = positionals
const unknown = what === undefined || what === 'shots' ? more[0] : what
if (unknown !== undefined) {
  refuse('console', `'${unknown}' is not known here.`)
}
await (what === 'shots' ? takeShots() : serve())
process.exit()
