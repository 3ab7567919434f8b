import { join } from 'node:path'

import type { InlineConfig } from 'vite'

import { repositoryRoot } from '../source-files.ts'

/** What the build of the console and its development server share. There is no configuration file besides. */
export const viteSettings = {
  configFile: false,
  root: join(repositoryRoot, 'console'),
  base: '/console/',
  appType: 'spa',
  publicDir: false,
  clearScreen: false,
  logLevel: 'warn',
  cacheDir: join(repositoryRoot, '.scratch/vite'),
  oxc: { jsx: { runtime: 'automatic' } },
} as const satisfies InlineConfig
