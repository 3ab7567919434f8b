import { serveThread } from '#platform/serve-thread.ts'
import { createPatternJobs } from '#policies/rules/pattern-jobs.ts'
import { re2jsEngine } from '#text/re2js-engine.ts'

/** The entry of threads that use the engine in JavaScript, also where the native one is installed. */
serveThread(createPatternJobs(re2jsEngine))
