// A scratch home with two projects, sessions of every kind, and a server over them.
import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const REPOSITORY = fileURLToPath(new URL('../../../..', import.meta.url));

/** A port that is free now. */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

export class World {
  constructor(binary) {
    this.binary = binary;
    this.root = mkdtempSync(join(tmpdir(), 'stepwell-page-'));
    this.home = join(this.root, 'home');
    this.work = join(this.root, 'greeter');
    this.other = join(this.root, 'notes');
    for (const folder of [this.home, this.work, this.other]) mkdirSync(folder);
    const keep = ['PATH', 'LANG', 'TMPDIR', 'LD_LIBRARY_PATH'];
    this.env = {
      ...Object.fromEntries(keep.filter((name) => process.env[name]).map((name) => [name, process.env[name]])),
      HOME: this.home,
      USER: 'ann',
    };
    this.running = [];
  }

  /** Runs a command to its end, and gives what it printed. */
  run(args, { folder = this.work, ok = [0] } = {}) {
    const done = spawnSync(this.binary, args, { cwd: folder, env: this.env, encoding: 'utf8', maxBuffer: 1 << 28 });
    if (!ok.includes(done.status)) throw new Error(`stepwell ${args.join(' ')}: exit ${done.status}\n${done.stderr}`);
    return done.stdout;
  }

  json(args, options) {
    return this.run([...args, '--json'], options)
      .trim()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  }

  /** The newest session of a project. */
  newest(folder = this.work) {
    return this.json(['ls'], { folder })[0].id;
  }

  /** Starts a command and does not wait for it. */
  start(args, { folder = this.work } = {}) {
    const child = spawn(this.binary, args, { cwd: folder, env: this.env, stdio: ['ignore', 'pipe', 'pipe'] });
    const process = { child, out: '', err: '', over: null };
    child.stdout.on('data', (data) => {
      process.out += data;
    });
    child.stderr.on('data', (data) => {
      process.err += data;
    });
    process.over = new Promise((resolve) => {
      child.on('close', (code, signal) => {
        process.signal = signal;
        resolve(code);
      });
    });
    this.running.push(child);
    return process;
  }

  script(name, answers) {
    const file = join(this.root, `${name}.yaml`);
    writeFileSync(file, JSON.stringify({ prices: { input: '3', output: '15' }, answers }));
    return `script:${file}`;
  }

  /** A model that says one part of its answer, and the other when it is told to go on. */
  async speaker(first, rest) {
    let goOn;
    const told = new Promise((resolve) => {
      goOn = resolve;
    });
    const server = createHttp(async (request, response) => {
      for await (const _ of request);
      const piece = (delta, finish_reason = null) =>
        response.write(`data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      piece({ role: 'assistant', content: first });
      await told;
      piece({ content: rest });
      piece({}, 'stop');
      response.end('data: [DONE]\n\n');
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const base = `http://127.0.0.1:${server.address().port}/v1`;
    this.env.SPEAKER_KEY = 'sk-speaker-0123456789';
    const folder = join(this.home, '.config/stepwell');
    mkdirSync(folder, { recursive: true });
    appendFileSync(
      join(folder, 'config.toml'),
      `\n[providers.speaker]\nbase_url = "${base}"\nprotocol = "openai"\nkey_env = "SPEAKER_KEY"\n`,
    );
    return { model: 'speaker/large', goOn, close: () => server.close() };
  }

  /** What new runs of the projects answer. */
  useScript(name, answers) {
    this.run(['config', 'set', '--user', 'model.name', this.script(name, answers)]);
  }

  /** Makes the sessions that every screen shows something of. */
  fill() {
    for (const folder of [this.work, this.other]) {
      spawnSync('git', ['init', '-q', folder], { env: this.env });
      this.run(['init'], { folder });
    }
    const flows = join(this.work, 'flows');
    mkdirSync(flows);
    for (const name of ['announcement.yaml', 'prompts'])
      cpSync(join(REPOSITORY, 'examples/flows', name), join(flows, name), { recursive: true });
    writeFileSync(join(this.work, 'README.md'), '# Greeter\n\nGreets people.\n');
    const call = (tool, args) => ({ tool, arguments: args });
    this.useScript('greet', [
      {
        text: 'I look at what is there **first**:\n\n1. the files\n2. what they say\n\nThen I plan.',
        usage: { input: 1812, output: 96 },
        calls: [
          call('list_files', { path: '.' }),
          call('read_file', { path: 'README.md' }),
          call('tasks', {
            action: 'add',
            tasks: [
              { id: 'script', kind: 'create', description: 'Write greet.sh' },
              { id: 'name', kind: 'modify', description: 'Greet by name', after: ['script'] },
              { id: 'docs', kind: 'modify', description: 'Say so in README.md', after: ['name'] },
            ],
          }),
        ],
      },
      {
        text: 'The script comes first.',
        usage: { input: 2410, output: 180 },
        calls: [call('write_file', { path: 'greet.sh', content: '#!/bin/sh\n# Greets.\necho "hello"\n' })],
      },
      {
        text: 'A subagent looks it over while I go on.',
        usage: { input: 2900, output: 75 },
        calls: [
          call('dispatch_subagent', {
            task: 'Read greet.sh and say whether it quotes its arguments.',
            agent: 'explore',
          }),
        ],
      },
      {
        text: 'Now it greets by name.',
        usage: { input: 3300, output: 160 },
        calls: [
          call('edit_file', {
            path: 'greet.sh',
            old_text: 'echo "hello"',
            new_text: 'name="${1:-world}"\necho "hello, $name"',
          }),
          call('tasks', { action: 'update', tasks: [{ id: 'script', status: 'done' }] }),
          call('tasks', { action: 'update', tasks: [{ id: 'name', status: 'running' }] }),
          call('run_command', { command: 'sh greet.sh Ann' }),
        ],
      },
      {
        text: '## Done\n\n`greet.sh` greets by name; without one it greets the world.\n\n| call | says |\n|---|---|\n| `sh greet.sh Ann` | hello, Ann |\n| `sh greet.sh` | hello, world |\n\nSee https://www.shellcheck.net for the rules I kept to.',
        usage: { input: 3900, output: 210 },
      },
      { text: 'It is `greet.sh` still, and it is short.', usage: { input: 4000, output: 20 } },
      { text: 'As you wish.', usage: { input: 4100, output: 20 } },
    ]);
    this.run(['run', 'Make greet.sh greet by name', '--mode', 'yolo']);
    this.greet = this.newest();
    this.run(['label', this.greet, 'greeter']);
    this.run(['tag', this.greet, 'shell', 'demo']);
    this.run(['checkpoint', this.greet, 'works']);
    this.useScript('quick', [
      {
        text: 'I tidied the notes.',
        usage: { input: 700, output: 30 },
        calls: [call('write_file', { path: 'notes.md', content: '- one\n- two\n' })],
      },
      { text: 'Done.', usage: { input: 800, output: 12 } },
    ]);
    this.run(['run', 'Tidy the notes', '--mode', 'yolo'], { folder: this.other });
    this.notes = this.newest(this.other);
  }

  /** What asks, is cut off, or has moved. */
  fillMore() {
    const call = (tool, args) => ({ tool, arguments: args });
    const points = this.json(['log', this.greet])
      .filter((event) => event.kind === 'step')
      .map((event) => event.seq);
    this.fork = JSON.parse(this.run(['fork', this.greet, '--at', String(points[1]), '--json'])).id;
    this.run(['label', this.fork, 'greeter-short']);
    const short = this.script(
      'short',
      [1, 2, 3, 4]
        .map(() => ({
          text: 'One line does.',
          usage: { input: 2000, output: 60 },
          calls: [call('write_file', { path: 'greet.sh', content: '#!/bin/sh\necho "hello, ${1:-you}"\n' })],
        }))
        .concat([{ text: 'Shorter now.', usage: { input: 2100, output: 20 } }]),
    );
    this.run(['resume', this.fork, 'make it shorter', '--mode', 'yolo', '--max-steps', '2', '--model', short], {
      ok: [0, 5],
    });
    this.useScript('gate', [
      {
        text: 'I remove the old folder.',
        usage: { input: 900, output: 40 },
        calls: [call('run_command', { command: 'rm -rf build && make all' })],
      },
      { text: 'It is clean.', usage: { input: 1000, output: 10 } },
    ]);
    this.run(['run', 'Clean the build folder'], { ok: [8] });
    this.gate = this.newest();
    this.useScript('edit', [
      {
        text: 'I change the README.',
        usage: { input: 900, output: 40 },
        calls: [
          call('write_file', {
            path: 'README.md',
            content: '# Greeter\n\nGreets people by name.\n\n    sh greet.sh Ann\n',
          }),
        ],
      },
      { text: 'It says so now.', usage: { input: 1000, output: 10 } },
    ]);
    this.run(['run', 'Say in the README how to call it'], { ok: [8] });
    this.edit = this.newest();
    this.useScript('flow', [
      { text: 'It is durable. It resumes. It forks.', usage: { input: 300, output: 50 } },
      { text: 'Stepwell is here. It keeps what your agents do.', usage: { input: 400, output: 60 } },
      { text: 'Stepwell 1.0 is here.', usage: { input: 500, output: 40 } },
    ]);
    this.run(['flow', 'run', 'flows/announcement.yaml', '--var', 'product=Stepwell'], { ok: [8] });
    this.flow = this.newest();
    this.useScript(
      'steps',
      Array.from({ length: 9 }, (_, n) => ({
        text: `Step ${n + 1}.`,
        usage: { input: 500 + n, output: 20 },
        calls: [call('write_file', { path: `part-${n + 1}.txt`, content: `${n + 1}\n` })],
      })).concat([{ text: 'All parts are there.', usage: { input: 600, output: 10 } }]),
    );
    this.run(['run', 'Write the parts', '--mode', 'yolo', '--max-steps', '4'], { ok: [5] });
    this.parts = this.newest();
    this.run(['run', 'An idea that went nowhere', '--mode', 'yolo', '--max-steps', '1'], { ok: [5] });
    this.waste = this.newest();
  }

  async serve() {
    this.port ??= await freePort();
    this.token ??= this.run(['serve', '--print-token']).trim();
    this.server = this.start(['serve', '--port', String(this.port)]);
    await this.isUp();
  }

  /** Another server over the same stores. */
  async another(options) {
    const other = Object.create(this);
    other.port = await freePort();
    other.server = this.start(['serve', '--port', String(other.port), ...options]);
    await other.isUp();
    return other;
  }

  get origin() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Waits until the server answers. */
  async isUp() {
    const until = Date.now() + 60_000;
    for (;;) {
      const answer = await fetch(`${this.origin}/api/v1/healthz`).catch(() => null);
      if (answer?.ok) return;
      if (this.server.child.exitCode !== null) throw new Error(`the server ended: ${this.server.err}`);
      if (Date.now() > until) throw new Error(`the server does not answer: ${this.server.err}`);
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
  }

  async kill() {
    this.server.child.kill('SIGKILL');
    await this.server.over;
  }

  /** The one-time link that the server printed. */
  async link() {
    const found = () => /https?:\/\/\S+\/login#\S+/.exec(this.server.out + this.server.err)?.[0];
    const late = AbortSignal.timeout(10_000);
    while (!found()) {
      if (late.aborted) throw new Error(`the server printed no link: ${this.server.out}${this.server.err}`);
      await new Promise((resolve) => {
        this.server.child.stdout.once('data', resolve);
        late.addEventListener('abort', resolve);
      });
    }
    return found();
  }

  api(path, options = {}) {
    const headers = {
      Authorization: `Bearer ${this.token}`,
      ...(options.body ? { 'Content-Type': 'application/json', 'X-Stepwell': '1' } : {}),
    };
    return fetch(`${this.origin}/api/v1${path}`, { ...options, headers }).then((answer) => answer.json());
  }

  read(path) {
    return readFileSync(join(this.work, path), 'utf8');
  }

  async end() {
    for (const child of this.running) if (child.exitCode === null) child.kill('SIGKILL');
    rmSync(this.root, { recursive: true, force: true });
  }
}
