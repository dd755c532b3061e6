/** The version of the package. */
import { readFileSync } from 'node:fs'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  // Our own package always has one.
  readonly version: string
}

export const VERSION: string = version
