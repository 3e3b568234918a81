import { cannotRun, openKvmBackend } from './kvm.ts';
import { describeProvider } from './suite.ts';

describeProvider('kvm', openKvmBackend, cannotRun);
