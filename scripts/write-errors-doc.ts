/** `npm run docs:errors`: writes docs/errors.md. A test compares the file with what this would write. */
import { writeFileSync } from 'node:fs'
import { errorsDoc } from './errors-doc.ts'

writeFileSync(new URL('../docs/errors.md', import.meta.url), errorsDoc())
console.log('wrote docs/errors.md')
