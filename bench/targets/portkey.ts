import { execFile, spawn } from 'node:child_process'
import { access, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { freePort } from '@gatehouse/tools/free-port'

import { pidOf, stopChild, untilListening } from './child.ts'
import { type Target, Unavailable } from './target.ts'

const version = '1.15.2'

/**
 * With a newer node-server than in its own lockfile, Portkey answers every stream with 500 (its issue 1389), and its
 * npm package has no lockfile. The override installs the version that it was tested with.
 */
const packages = {
  private: true,
  dependencies: { '@portkey-ai/gateway': version },
  overrides: { '@hono/node-server': '1.13.5' },
}

/** Portkey's gateway, as published. It is installed in the scratch folder, not as a dependency of this repository. */
export async function startPortkey(upstream: string, scratch: string): Promise<Target> {
  const file = await install(join(scratch, `portkey-${version}`))
  const port = await freePort()
  const child = spawn(process.execPath, [file, '--headless', `--port=${port}`], {
    env: { PATH: process.env['PATH'] ?? '', NODE_ENV: 'production' },
    stdio: 'ignore',
  })
  const url = `http://127.0.0.1:${port}`
  try {
    await untilListening(url, child)
  } catch (error) {
    await stopChild(child)
    throw error
  }
  return {
    name: 'Portkey',
    url,
    headers: { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${upstream}/v1` },
    keys: [],
    pids: [pidOf(child)],
    stop: () => stopChild(child),
  }
}

async function install(folder: string): Promise<string> {
  const file = join(folder, 'node_modules/@portkey-ai/gateway/build/start-server.js')
  const isInstalled = await access(file).then(
    () => true,
    () => false,
  )
  if (isInstalled) return file
  console.log(`Installing Portkey ${version} …`)
  await mkdir(folder, { recursive: true })
  const quiet = ['--silent', '--no-audit', '--no-fund', '--ignore-scripts']
  try {
    await writeFile(join(folder, 'package.json'), JSON.stringify(packages))
    await promisify(execFile)('npm', ['install', ...quiet, '--prefix', folder], {
      timeout: 120_000,
    })
  } catch (cause) {
    await rm(folder, { recursive: true, force: true })
    throw new Unavailable(`npm could not install Portkey ${version}.`, { cause })
  }
  return file
}
