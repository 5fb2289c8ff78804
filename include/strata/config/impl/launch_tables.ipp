#pragma once
// strata/config/impl/launch_tables.ipp - flags of the launchers `deepspeed` and `torchrun`.

#include <string>

#include <strata/config/launch_script.hpp>

namespace strata::config {

STRATA_INLINE const FormatTable& deepspeed_launcher_table() {
    static const FormatTable table = [] {
        FormatTable all{"`deepspeed`", "`deepspeed --help`"};
        all.no_others();
        FormatTable::Rows t = all.top();
        t.text("hostfile", "Machines and their slots").by_default("/job/hostfile").acts("launch: hostfile");
        t.text("include", "Which of them: `host@other:0,1`").acts("launch: include");
        t.text("exclude", "Which of them not").acts("launch: exclude");
        t.whole("num_nodes", "The first machines of the hostfile").within({-1, 1e6}).acts("launch: machines");
        t.whole("num_gpus", "Ranks of each machine").within({-1, 1e6}).acts("launch: ranks");
        t.whole("node_rank", "Which machine this is").within({-1, 1e6}).acts("launch: machine_rank");
        t.text("master_addr", "Rank 0's machine").acts("launch: main_address");
        t.whole("master_port", "Its port").within({0, 65535}).by_default("29500").acts("launch: main_port");
        const std::string mpi = "`strata launch`, which is mpirun, starts ranks";
        t.text("launcher", "Who starts ranks on other machines").by_default("pdsh").none(mpi);
        t.text("launcher_args", "Its own flags").none_and_warns(mpi);
        t.flag("module", "The program is a Python module").none("a program of strata's is an executable");
        t.flag("no_python", "The program is no Python").none("a program of strata's is an executable");
        t.flag("no_local_rank", "No --local_rank for the program").none("a rank asks MPI for its number");
        t.flag("no_ssh", "Start it on every machine yourself").none(mpi);
        t.flag("no_ssh_check", "Do not ask whether ssh works").none(mpi);
        t.whole("ssh_port", "ssh's port").none(mpi);
        t.flag("force_multi", "Several machines, even for one").none(mpi);
        t.flag("save_pid", "Write down the processes").none("mpirun ends what it started");
        t.text("enable_each_rank_log", "A log for every rank").none("mpirun --output-filename does so");
        t.text("autotuning", "Try batch sizes and stages").none_and_warns("strata tries nothing: say what you mean");
        t.flag("elastic_training", "Ranks come and go")
            .none_and_warns("a run resumes on another number of ranks, and keeps the one that it has");
        t.whole("min_elastic_nodes").none("of elastic_training");
        t.whole("max_elastic_nodes").none("of elastic_training");
        t.flag("bind_cores_to_rank", "Bind ranks to cores").none("mpirun binds ranks: --bind-to");
        t.text("bind_core_list", "Which cores").none("mpirun binds ranks: --bind-to");
        t.text("venv_script", "What is sourced first").none(mpi);
        return all;
    }();
    return table;
}

STRATA_INLINE const FormatTable& torchrun_table() {
    static const FormatTable table = [] {
        FormatTable all{"`torchrun`", "`torchrun --help`"};
        all.no_others();
        FormatTable::Rows t = all.top();
        t.text("nproc_per_node", "Ranks of each machine: a number, `gpu`, `cpu` or `auto`").acts("launch: ranks");
        t.text("nnodes", "Machines, or from and to").acts("launch: machines");
        t.whole("node_rank", "Which machine this is").within({0, 1e6}).acts("launch: machine_rank");
        t.text("master_addr", "Rank 0's machine").acts("launch: main_address");
        t.whole("master_port", "Its port").within({0, 65535}).by_default("29500").acts("launch: main_port");
        t.text("rdzv_endpoint", "Where processes meet: host:port").acts("launch: main_address, main_port");
        const std::string mpi = "mpirun brings ranks together";
        for (const char* key : {"rdzv_backend", "rdzv_id", "rdzv_conf", "local_addr"}) t.text(key).none(mpi);
        t.flag("standalone", "One machine").none(mpi);
        t.whole("max_restarts", "Starts after a failure")
            .by_default("0")
            .none_and_warns("a run that failed is started again by who started it, and resumes");
        t.number("monitor_interval", "Seconds between looks at ranks").none("a rank that dies is noticed at once");
        t.text("start_method", "How processes begin").none(mpi);
        t.text("role", "What workers are called in logs").none("messages have the rank's number");
        t.flag("module", "The program is a Python module").none("a program of strata's is an executable");
        t.flag("no_python", "The program is no Python").none("a program of strata's is an executable");
        t.flag("run_path").none("a program of strata's is an executable");
        for (const char* key : {"log_dir", "redirects", "tee", "local_ranks_filter", "logs_specs"})
            t.text(key).none("ranks' output goes where the launcher's goes; mpirun --output-filename keeps them apart");
        t.flag("use_env").none("a rank asks MPI for its number");
        return all;
    }();
    return table;
}

}  // namespace strata::config
