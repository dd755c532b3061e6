/** `npm run docs:config`: writes docs/configuration.md. A test compares the file with what this would write. */
import { writeFileSync } from 'node:fs'
import { configDoc } from './config-doc.ts'

writeFileSync(new URL('../docs/configuration.md', import.meta.url), configDoc())
console.log('wrote docs/configuration.md')
