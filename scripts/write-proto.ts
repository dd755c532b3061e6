/**
 * `npm run proto`: writes the TypeScript of the messages in proto/. The compiler is fetched when it is used
 * and is no dependency: the written files are checked in, and messages change once in a blue moon.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const TOOLS = ['@bufbuild/buf@1.74.0', '@bufbuild/protoc-gen-es@2.16.0']

const template = {
  version: 'v2',
  plugins: [{ local: 'protoc-gen-es', out: 'src/queues/wire', opt: ['target=ts', 'import_extension=ts'] }],
}

const packages = TOOLS.flatMap((tool) => ['--package', tool])
const { status, error } = spawnSync(
  'npx',
  ['--yes', ...packages, 'buf', 'generate', 'proto', '--template', JSON.stringify(template)],
  { cwd: fileURLToPath(new URL('..', import.meta.url)), stdio: 'inherit' },
)
if (error) console.error(`npx could not be run: ${error.message}`)
process.exitCode = status ?? 1
