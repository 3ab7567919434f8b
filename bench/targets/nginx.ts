import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { freePort } from '@gatehouse/tools/free-port'

import { pidOf, stopChild, untilListening } from './child.ts'
import { ensureProgram } from './debian-package.ts'
import type { Target } from './target.ts'

/** One worker: it is compared with programs that use one core. */
const configuration = (folder: string, port: number, upstream: string) => `
daemon off;
worker_processes 1;
pid ${folder}/pid;
error_log ${folder}/error.log warn;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  keepalive_requests 100000000;
  upstream model { server ${new URL(upstream).host}; keepalive 256; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://model;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`

/** nginx as a plain proxy that forwards streams without buffering. */
export async function startNginx(upstream: string, scratch: string): Promise<Target> {
  await ensureProgram('nginx', 'nginx-light')
  await mkdir(scratch, { recursive: true })
  const folder = await mkdtemp(join(scratch, 'nginx-'))
  const port = await freePort()
  const file = join(folder, 'nginx.conf')
  await writeFile(file, configuration(folder, port, upstream))
  const child = spawn('nginx', ['-p', folder, '-e', join(folder, 'error.log'), '-c', file], {
    stdio: 'ignore',
  })
  const stop = async () => {
    await stopChild(child)
    await rm(folder, { recursive: true, force: true })
  }
  const url = `http://127.0.0.1:${port}`
  try {
    await untilListening(url, child)
  } catch (error) {
    await stop()
    throw error
  }
  const main = pidOf(child)
  const workers = await readFile(`/proc/${main}/task/${main}/children`, 'utf8')
  const pids = [main, ...workers.trim().split(' ').map(Number)]
  return { name: 'nginx', url, headers: {}, keys: [], pids, stop }
}
