import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, test } from 'vitest'
import { parse } from 'yaml'

import { repositoryRoot } from './source-files.ts'

// None of our own runs uses the files for Git hosts and editors, so these tests check that they can be read and that
// the commands they name exist.

const read = (path: string) => readFile(join(repositoryRoot, path), 'utf8')

async function yamlFiles(): Promise<string[]> {
  const folders = ['.github', '.devcontainer', 'deploy']
  const lists = await Promise.all(
    folders.map(async (folder) => {
      const names = await readdir(join(repositoryRoot, folder), { recursive: true })
      return names.filter((name) => /\.ya?ml$/.test(name)).map((name) => `${folder}/${name}`)
    }),
  )
  return lists.flat()
}

test('every YAML file is one document without errors', async () => {
  const files = await yamlFiles()
  expect(files.length).toBeGreaterThan(5)
  for (const file of files) expect([file, typeof parse(await read(file))]).toEqual([file, 'object'])
})

test('the hosted workflow runs .ci/run on the whole history', async () => {
  const { jobs } = parse(await read('.github/workflows/ci.yml')) as {
    jobs: Record<string, { steps: { run?: string; with?: Record<string, unknown> }[] }>
  }
  const steps = Object.values(jobs).flatMap((job) => job.steps)
  expect(steps.some(({ run }) => run?.endsWith('bash .ci/run'))).toBe(true)
  expect(steps.some((step) => step.with?.['fetch-depth'] === 0)).toBe(true)
  expect(existsSync(join(repositoryRoot, '.ci/run'))).toBe(true)
})

test('the development container has the servers that the tests need', async () => {
  const container = JSON.parse(await read('.devcontainer/devcontainer.json')) as {
    service: string
    dockerComposeFile: string
    postCreateCommand: string
  }
  const { services } = parse(await read(`.devcontainer/${container.dockerComposeFile}`)) as {
    services: Record<string, { environment?: Record<string, string> }>
  }
  expect(Object.keys(services).toSorted()).toEqual(['postgres', 'redis', 'workspace'])
  const { TEST_DATABASE_URL = '', TEST_REDIS_URL = '' } =
    services[container.service]?.environment ?? {}
  expect([new URL(TEST_DATABASE_URL).hostname, new URL(TEST_REDIS_URL).hostname]).toEqual([
    'postgres',
    'redis',
  ])
  expect(container.postCreateCommand).toMatch(/^\.\/dev check\b/)
})
