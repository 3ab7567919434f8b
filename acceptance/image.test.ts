import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'

import { buildProgram } from '@gatehouse/tools/build/build-program'
import { listFiles } from '@gatehouse/tools/build/list-files'
import { repositoryRoot } from '@gatehouse/tools/source-files'
import { afterAll, beforeAll, expect, test } from 'vitest'

// What the image contains beside its base, by the rules of the Dockerfile, without an engine that builds it.

type Stage = { base: string; lines: string[] }

let dockerfile: string
let stages: Map<string, Stage>
let program: string
beforeAll(async () => {
  dockerfile = await readFile(join(repositoryRoot, 'deploy/Dockerfile'), 'utf8')
  stages = readStages(dockerfile)
  await mkdir(join(repositoryRoot, '.scratch'), { recursive: true })
  program = await mkdtemp(join(repositoryRoot, '.scratch/image-'))
  await buildProgram(program, { hasMaps: false })
})
afterAll(() => rm(program, { recursive: true, force: true }))

/** The stages by name, each with its instructions; lines that are continued are one. The last stage has no name. */
function readStages(text: string): Map<string, Stage> {
  const found = new Map<string, Stage>()
  const whole = text.replaceAll(/^\s*#.*\n/gm, '').replaceAll(/\\\n\s*/g, '')
  for (const part of whole.split(/^FROM /m).slice(1)) {
    const [first = '', ...lines] = part.split('\n').filter((line) => line !== '')
    const [base = '', name = 'image'] = first.split(' AS ')
    found.set(name, { base, lines })
  }
  return found
}

const linesOf = (stage: string) => stages.get(stage)?.lines ?? []

/** What a stage's commands put into a folder of `/`. */
async function filesIn(stage: string, folder: string): Promise<string[]> {
  const commands = linesOf(stage).filter((line) => line.startsWith('RUN '))
  if (commands.some((line) => line.includes(`tools/build.ts --without-maps --out ${folder}`))) {
    return listFiles(program)
  }
  return commands.flatMap((line) =>
    [...line.matchAll(/install -D -t (\S+) ([^&]+)/g)]
      .filter(([, target = '']) => target === folder || target.startsWith(`${folder}/`))
      .flatMap(([, target = '', names = '']) =>
        names
          .trim()
          .split(' ')
          .map((name) => join(target, name.split('/').at(-1) ?? '').slice(folder.length + 1)),
      ),
  )
}

async function imageFiles(): Promise<string[]> {
  const copies = linesOf('image').filter((line) => /^(COPY|ADD) /.test(line))
  const lists = await Promise.all(
    copies.map(async (line) => {
      const [, stage = '', from = '', to = ''] = /^COPY --from=(\S+) (\S+) (\S+)$/.exec(line) ?? []
      expect([line, stages.has(stage)]).toEqual([line, true])
      return (await filesIn(stage, from)).map((name) => join(to, name))
    }),
  )
  return lists.flat()
}

test('the image has the program and the native engine, and no source, map, test or training of ours', async () => {
  const files = await imageFiles()
  expect(files).toEqual(
    expect.arrayContaining([
      'gatehouse.mjs',
      'main.mjs',
      'thread.mjs',
      'assets/limiter.lua',
      'assets/model.bin',
      'migrations/0001_access.sql',
      'LICENSE',
      'LICENSES-OF-PACKAGES.txt',
      'node_modules/re2/build/Release/re2.node',
      'node_modules/re2/LICENSE',
    ]),
  )
  const unwanted = files.filter(
    (name) => /\.(ts|map)$/.test(name) || /(^|\/)(test|tests|testing|training|src)\//.test(name),
  )
  expect(unwanted).toEqual([])
  expect(files.filter((name) => name.startsWith('node_modules/re2/'))).toHaveLength(4)
})

test('what the build copies is enough for it, and every file that the Dockerfile names exists', async () => {
  const copies = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)]
  const names = copies.flatMap(([, list = '']) => list.split(' ')).filter((name) => name !== '.')
  const known = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: repositoryRoot,
    encoding: 'utf8',
  }).split('\n')
  expect(names.filter((name) => !known.includes(name))).toEqual([])
  const ignored = (await readFile(join(repositoryRoot, '.dockerignore'), 'utf8')).split('\n')
  for (const needed of ['contract', 'service', 'cli', 'program', 'tools', 'docs', 'LICENSE']) {
    expect(ignored).not.toContain(needed)
  }
})

test('it runs as a user without rights, and its command gets the signals', () => {
  const lines = linesOf('image')
  expect(lines).toContain('USER node')
  expect(lines).toContain('ENTRYPOINT ["gatehouse"]')
  expect(
    lines.some((line) => line.includes('ln -s /gatehouse/gatehouse.mjs /usr/local/bin/')),
  ).toBe(true)
})
