/** The version of this program, as its package states it. */
import { readFileSync } from 'node:fs'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  // The package of this very file; it always has a version.
  readonly version: string
}

export const VERSION: string = version
